package io.github.nccl4j.highlevel;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import org.bytedeco.javacpp.Pointer;

/** Memory at a plain address, for calls that take a pointer object. Owns nothing. */
final class Address extends Pointer {
    Address(long address) {
        super((Pointer) null);
        this.address = address;
    }

    /** Host memory as a buffer in the machine's byte order. */
    static ByteBuffer buffer(long address, int bytes) {
        return new Address(address).<Pointer>capacity(bytes).asByteBuffer().order(ByteOrder.nativeOrder());
    }
}
