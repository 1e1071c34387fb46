package io.github.nccl4j.samples.support;

import org.bytedeco.javacpp.Pointer;

/** Memory at a plain address, for calls that take a pointer object. Owns nothing. */
final class Address extends Pointer {

    Address(long address) {
        super((Pointer) null);
        this.address = address;
    }
}
