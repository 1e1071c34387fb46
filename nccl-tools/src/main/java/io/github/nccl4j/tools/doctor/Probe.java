package io.github.nccl4j.tools.doctor;

import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.NcclEncryption;
import io.github.nccl4j.highlevel.NcclException;
import io.github.nccl4j.highlevel.NcclLibrary;
import io.github.nccl4j.library.NativeLibrary;
import io.github.nccl4j.tools.launch.LauncherWatch;
import io.github.nccl4j.tools.support.LibraryCopies;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.bytedeco.cuda.global.cudart;
import org.bytedeco.javacpp.BytePointer;
import org.bytedeco.javacpp.SizeTPointer;

/**
 * The program of a child process that calls native code, which may crash: {@code main("library")} or {@code main("gpus")}.
 *
 * <p>Prints each result at once, as a line of a name and values, separated by tabs; {@link ProbeAnswer} reads them.
 */
final class Probe {

    private Probe() {}

    public static void main(String[] args) {
        LauncherWatch.start();
        try {
            if (args[0].equals("library")) {
                library();
            } else {
                gpus();
            }
        } catch (NcclException | LinkageError e) {
            print("error", e.getMessage());
        }
        System.out.flush();
        // Threads of some drivers would delay a normal exit.
        Runtime.getRuntime().halt(0);
    }

    static void print(String name, Object... values) {
        String line = Stream.concat(Stream.of(name), Arrays.stream(values))
                .map(value -> String.valueOf(value)
                        .replace("\\", "\\\\")
                        .replace("\t", "\\t")
                        .replace("\n", "\\n"))
                .collect(Collectors.joining("\t"));
        System.out.println(line);
        System.out.flush();
    }

    /** Reverses the escaping of values by {@link #print}. */
    static String unescape(String value) {
        StringBuilder text = new StringBuilder();
        for (int i = 0; i < value.length(); i++) {
            char c = value.charAt(i);
            if (c == '\\' && i + 1 < value.length()) {
                i++;
                c = value.charAt(i) == 't' ? '\t' : value.charAt(i) == 'n' ? '\n' : value.charAt(i);
            }
            text.append(c);
        }
        return text.toString();
    }

    private static void library() {
        List<NativeLibrary.Candidate> candidates = NativeLibrary.candidates();
        candidates.forEach(candidate -> print("candidate", candidate.place(), candidate.problem()));
        if (candidates.stream().noneMatch(candidate -> candidate.problem().isEmpty())) {
            return;
        }
        NcclLibrary library = NcclLibrary.get();
        print("path", NativeLibrary.path());
        print("version", library.version());
        print("flavor", library.flavor());
        print("form", library.alltoAllvForm());
        print("encryption", NcclEncryption.support());
        print("architecture", System.getProperty("os.arch"));
        NativeLibrary.shadowed()
                .forEach(place -> LibraryFile.release(place).ifPresent(release -> print("shadowed", place, release)));
        library.cudaVersion().ifPresent(cuda -> print("cuda", cuda));
        try (Stream<String> maps = Files.lines(Path.of("/proc/self/maps"), StandardCharsets.ISO_8859_1)) {
            LibraryCopies.of(maps).forEach(copy -> print("copy", copy));
        } catch (IOException e) {
            // Report no copies.
        }
    }

    private static void gpus() {
        int count = Device.cudaCount();
        print("count", count);
        if (count == 0) {
            return;
        }
        Device.cuda(0);
        int[] number = new int[1];
        if (cudart.cudaDriverGetVersion(number) == 0) {
            print("driver", number[0]);
        }
        if (cudart.cudaRuntimeGetVersion(number) == 0) {
            print("runtime", number[0]);
        }
        for (int gpu = 0; gpu < count; gpu++) {
            gpu(gpu);
        }
        for (int from = 0; from < count; from++) {
            for (int to = 0; to < count; to++) {
                if (from != to && cudart.cudaDeviceCanAccessPeer(number, from, to) == 0) {
                    print("peer", from, to, number[0]);
                }
            }
        }
    }

    private static void gpu(int gpu) {
        byte[] name = new byte[256];
        cudart.cuDeviceGetName(name, name.length, gpu);
        byte[] bus = new byte[32];
        cudart.cudaDeviceGetPCIBusId(bus, bus.length, gpu);
        int[] major = new int[1];
        int[] minor = new int[1];
        cudart.cudaDeviceGetAttribute(major, cudart.cudaDevAttrComputeCapabilityMajor, gpu);
        cudart.cudaDeviceGetAttribute(minor, cudart.cudaDevAttrComputeCapabilityMinor, gpu);
        ByteBuffer bytes = ByteBuffer.allocateDirect(Long.BYTES).order(ByteOrder.nativeOrder());
        cudart.cuDeviceTotalMem(new SizeTPointer(new BytePointer(bytes)), gpu);
        print("gpu", gpu, text(name), text(bus), major[0] + "." + minor[0], bytes.getLong(0));
    }

    private static String text(byte[] terminated) {
        int end = 0;
        while (end < terminated.length && terminated[end] != 0) {
            end++;
        }
        return new String(terminated, 0, end, StandardCharsets.UTF_8);
    }
}
