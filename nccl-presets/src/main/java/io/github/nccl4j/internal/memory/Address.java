package io.github.nccl4j.internal.memory;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import org.bytedeco.javacpp.Pointer;

/** Pointer object for a plain address, for calls that take one. Owns nothing. */
public final class Address extends Pointer {
    public Address(long address) {
        super((Pointer) null);
        this.address = address;
    }

    /** 1 byte: JavaCPP otherwise assumes the size of a pointer for classes that it does not know. */
    @Override
    public int sizeof() {
        return 1;
    }

    /** Returns host memory as a buffer in the machine's byte order. */
    public static ByteBuffer buffer(long address, int bytes) {
        return new Address(address).<Pointer>capacity(bytes).asByteBuffer().order(ByteOrder.nativeOrder());
    }
}
