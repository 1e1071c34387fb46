package io.github.nccl4j.internal.config;

import io.github.nccl4j.internal.memory.Address;
import io.github.nccl4j.library.StructInitializers;
import io.github.nccl4j.nccl.ncclCollConfig_t;
import io.github.nccl4j.nccl.ncclConfigExt_t;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import org.bytedeco.javacpp.BytePointer;
import org.bytedeco.javacpp.Loader;

/**
 * A {@code ncclCollConfig_t} with its texts and its list of options, in one block of native memory. Immutable after
 * construction, so that any number of calls may read it at once.
 *
 * <p>The block is a direct buffer, which the JVM frees when the buffer is unreachable: a call keeps the configuration
 * reachable as long as NCCL may read the block. A program may have any number of configurations, such as one for each
 * tag.
 */
public final class NativeCollectiveConfig {
    /** An option of a vendor: a number, a text, or an address as a Long. */
    public record Option(int vendorId, int optionId, Object value) {}

    private static final int ALIGNMENT = Long.BYTES;

    private final ByteBuffer memory;
    private final long address;
    private int used;

    public NativeCollectiveConfig(Map<CollectiveConfigField, Object> values) {
        memory = ByteBuffer.allocateDirect(bytes(values)).order(ByteOrder.nativeOrder());
        try (BytePointer begin = new BytePointer(memory)) {
            address = begin.address();
        }
        StructInitializers.collConfig(take(Loader.sizeof(ncclCollConfig_t.class)));
        ncclCollConfig_t config = new ncclCollConfig_t(new Address(address));
        values.forEach((field, value) -> write(config, field, value));
    }

    private void write(ncclCollConfig_t config, CollectiveConfigField field, Object value) {
        switch (field) {
            case EXT -> config.ext(options((List<?>) value));
            case ALG_SELECTION -> config.algSelection(text(value.toString()));
            case FORCE_ALG_SELECTION -> config.forceAlgSelection((Boolean) value ? 1 : 0);
            case CTA_POLICY -> config.CTAPolicy((Integer) value);
            case USER_PROFILER_TAG -> config.userProfilerTag((Long) value);
            case LAUNCH_COMPLETION_EVENT -> memory.putLong(config.offsetof("launchCompletionEvent"), (Long) value);
            default -> field.write(config, (Integer) value);
        }
    }

    private ncclConfigExt_t options(List<?> options) {
        ncclConfigExt_t next = null;
        for (int i = options.size() - 1; i >= 0; i--) {
            Option option = (Option) options.get(i);
            ncclConfigExt_t one = new ncclConfigExt_t(new Address(take(Loader.sizeof(ncclConfigExt_t.class))));
            one.next(next).key_vendorId(option.vendorId()).key_optionId(option.optionId());
            if (option.value() instanceof Integer number) {
                one.val_i(number);
            } else if (option.value() instanceof String text) {
                one.val_s(text(text));
            } else {
                one.val_raw(new Address((Long) option.value()));
            }
            next = one;
        }
        return next;
    }

    private BytePointer text(String text) {
        byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
        long at = take(bytes.length + 1);
        memory.put((int) (at - address), bytes);
        return new BytePointer(new Address(at));
    }

    /** Reserves a part of the block, filled with zeros, and returns its address. */
    private long take(int bytes) {
        long at = address + used;
        used += aligned(bytes);
        return at;
    }

    private static int bytes(Map<CollectiveConfigField, Object> values) {
        int bytes = aligned(Loader.sizeof(ncclCollConfig_t.class));
        Object selection = values.get(CollectiveConfigField.ALG_SELECTION);
        bytes += selection == null ? 0 : bytesOf(selection.toString());
        Object options = values.get(CollectiveConfigField.EXT);
        if (options != null) {
            for (Object option : (List<?>) options) {
                bytes += aligned(Loader.sizeof(ncclConfigExt_t.class));
                Object value = ((Option) option).value();
                bytes += value instanceof String text ? bytesOf(text) : 0;
            }
        }
        return bytes;
    }

    private static int bytesOf(String text) {
        return aligned(text.getBytes(StandardCharsets.UTF_8).length + 1);
    }

    private static int aligned(int bytes) {
        return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    }

    /** The address of the struct. */
    public long address() {
        return address;
    }
}
