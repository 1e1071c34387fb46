package io.github.nccl4j.launch.wire;

import java.io.IOException;
import java.nio.ByteBuffer;

/**
 * An unrequested message of the store to a member of a group, about another member.
 *
 * @param group the full name of the group
 * @param number the number of the other member
 * @param process the address and process of the other member
 * @param reason the reason why the member counts as lost; empty for the other kinds
 * @param nanos the time of the member's silence; 0 for the other kinds
 */
public record Notice(Kind kind, String group, int number, String process, String reason, long nanos) {
    /** The kinds of notices; their order is that of the codes on the wire. */
    public enum Kind {
        /** The member is lost. */
        LOST,
        /** The member has sent no heartbeat for a while. */
        SILENT,
        /** The member was silent, and has sent something. */
        HEARD,
        /** The store is in the process of this member, and is lost with it. */
        KEEPER;

        private static final Kind[] ALL = values();
    }

    public byte[] toBytes() {
        return new Wire.Frame()
                .number32(Wire.NOTICE)
                .number8(kind.ordinal())
                .text(group)
                .number32(number)
                .text(process)
                .text(reason)
                .number64(nanos)
                .toBytes();
    }

    /** Reads a notice from a frame, behind its number. */
    public static Notice read(ByteBuffer frame) throws IOException {
        int code = frame.get();
        if (code < 0 || code >= Kind.ALL.length) {
            throw new IOException("kind of a notice must be from 0 to " + (Kind.ALL.length - 1) + ": " + code);
        }
        return new Notice(
                Kind.ALL[code], Wire.text(frame), frame.getInt(), Wire.text(frame), Wire.text(frame), frame.getLong());
    }
}
