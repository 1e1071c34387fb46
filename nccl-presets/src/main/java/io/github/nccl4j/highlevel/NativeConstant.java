package io.github.nccl4j.highlevel;

import java.util.Collection;

/** A constant of {@code nccl.h}. */
interface NativeConstant {
    /** Returns the value in {@code nccl.h}. */
    int code();

    /** Returns the value of several flags. */
    static int combine(Collection<?> flags) {
        int code = 0;
        for (Object flag : flags) {
            code |= ((NativeConstant) flag).code();
        }
        return code;
    }
}
