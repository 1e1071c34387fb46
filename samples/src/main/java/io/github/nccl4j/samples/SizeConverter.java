package io.github.nccl4j.samples;

import io.github.nccl4j.samples.support.ByteSize;
import picocli.CommandLine.ITypeConverter;
import picocli.CommandLine.TypeConversionException;

/** Reads options such as {@code -e 64M}. Has no state. */
public final class SizeConverter implements ITypeConverter<Long> {

    /** For picocli. */
    public SizeConverter() {}

    @Override
    public Long convert(String text) {
        try {
            return ByteSize.parse(text);
        } catch (IllegalArgumentException notASize) {
            throw new TypeConversionException(notASize.getMessage());
        }
    }
}
