package io.github.nccl4j.tools;

import io.github.nccl4j.tools.support.ByteSize;
import picocli.CommandLine.ITypeConverter;
import picocli.CommandLine.TypeConversionException;

/** Converts option values such as {@code 64M} to bytes. Stateless. */
public final class SizeConverter implements ITypeConverter<Long> {

    /** For picocli. */
    public SizeConverter() {}

    @Override
    public Long convert(String text) {
        try {
            return ByteSize.parse(text);
        } catch (IllegalArgumentException e) {
            throw new TypeConversionException(e.getMessage());
        }
    }
}
