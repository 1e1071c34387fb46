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

    /** In bytes: JavaCPP takes the size of a pointer for that of what a class it does not know points to. */
    @Override
    public int sizeof() {
        return 1;
    }

    /** Host memory as a buffer in the machine's byte order. */
    static ByteBuffer buffer(long address, int bytes) {
        return new Address(address).<Pointer>capacity(bytes).asByteBuffer().order(ByteOrder.nativeOrder());
    }
}
