package io.github.nccl4j.tests;

import io.github.nccl4j.global.nccl;
import io.github.nccl4j.global.nccl_device;
import io.github.nccl4j.highlevel.NcclEncryption;
import io.github.nccl4j.highlevel.NcclLibrary;
import io.github.nccl4j.highlevel.NcclLibraryException;
import io.github.nccl4j.library.NativeLibrary;
import io.github.nccl4j.nccl.ncclCollConfig_t;
import io.github.nccl4j.nccl.ncclEncryptionConfig_t;
import io.github.nccl4j.nccl.ncclUniqueId;
import io.github.nccl4j.nccl_device.ncclCommProperties_t;
import io.github.nccl4j.nccl_device.ncclDevCommRequirements_t;
import io.github.nccl4j.nccl_device.ncclDevComm_t;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.TreeSet;
import org.bytedeco.javacpp.Pointer;
import org.bytedeco.javacpp.PointerPointer;

/** Prints what a real library answers to calls that need no GPU, a line each: what, a tab, the answer. */
final class RealLibraryScenario {
    private RealLibraryScenario() {}

    public static void main(String... args) throws Exception {
        print("path", NativeLibrary.path());
        print("version", NativeLibrary.version());
        print("engine", NativeLibrary.engine());
        print("library", NcclLibrary.get());
        print("cuda", NcclLibrary.get().cudaVersion().orElse("unknown"));
        print("gpus", NativeLibrary.gpuCount());
        print("alltoallv form", NativeLibrary.alltoAllvArguments());
        print("encryption", encryption());
        uniqueId();
        for (int code : new int[] {0, 1, 2, 3, 4, 5, 6, 7, 100, -1}) {
            print("error string " + code, nccl.ncclGetErrorString(code));
        }
        functions();
        results();
        System.out.flush();
        // The library's own threads wait for ranks that never come.
        Runtime.getRuntime().halt(0);
    }

    /** Whether the library can encrypt, and what a program gets that wants it to. */
    private static String encryption() {
        try {
            NcclEncryption.enable("0123456789abcdef0123456789abcdef".getBytes(StandardCharsets.US_ASCII));
            return NcclEncryption.support() + " enabled";
        } catch (NcclLibraryException refused) {
            return NcclEncryption.support() + " " + refused.getMessage();
        }
    }

    private static void uniqueId() {
        try (ncclUniqueId id = new ncclUniqueId()) {
            int result = nccl.ncclGetUniqueId(id);
            int sum = 0;
            for (int i = 0; i < nccl.NCCL_UNIQUE_ID_BYTES; i++) {
                sum |= id.internal(i);
            }
            print("unique id", result + ", " + id.sizeof() + " bytes, " + (sum == 0 ? "all zero" : "not all zero"));
        }
    }

    /** Which functions there are; those that are not, are called. */
    private static void functions() throws IllegalAccessException {
        List<String> provided = new ArrayList<>();
        TreeSet<String> names = new TreeSet<>();
        List<Method> methods = new ArrayList<>(List.of(nccl.class.getDeclaredMethods()));
        methods.addAll(List.of(nccl_device.class.getDeclaredMethods()));
        for (Method method : methods) {
            if (method.getName().matches("p?nccl(?!MaxRedOp)[A-Z].*")) {
                names.add(method.getName());
            }
        }
        for (String name : names) {
            if (NativeLibrary.provides(name)) {
                provided.add(name);
                continue;
            }
            for (Method method : methods) {
                boolean raw = Arrays.stream(method.getParameterTypes()).allMatch(Class::isPrimitive);
                if (method.getName().equals(name) && raw) {
                    print("call " + name, call(method));
                }
            }
        }
        print("provided", String.join(" ", provided));
    }

    private static String call(Method method) throws IllegalAccessException {
        Object[] zeros = Arrays.stream(method.getParameterTypes())
                .map(type -> type == long.class ? (Object) 0L : (Object) 0)
                .toArray();
        try {
            return "returned " + method.invoke(null, zeros);
        } catch (InvocationTargetException e) {
            return e.getCause() instanceof NcclLibraryException missing
                    ? missing.getMessage()
                    : e.getCause().toString();
        }
    }

    private static void results() {
        result("ncclGetVersion(null)", nccl.ncclGetVersion(0L));
        result("ncclGetUniqueId(null)", nccl.ncclGetUniqueId(0L));
        result("ncclGroupStart", nccl.ncclGroupStart());
        result("ncclGroupEnd", nccl.ncclGroupEnd());
        result("ncclGroupEnd again", nccl.ncclGroupEnd());
        result("ncclCommDestroy(null)", nccl.ncclCommDestroy(0L));
        result("ncclCommAbort(null)", nccl.ncclCommAbort(0L));
        if (NativeLibrary.provides("ncclCommFinalize")) {
            result("ncclCommFinalize(null)", nccl.ncclCommFinalize(0L));
        }
        result("ncclCommCount(null)", nccl.ncclCommCount(0L, new int[1]));
        int result = nccl.ncclAllReduce(0L, 0L, 1, nccl.ncclFloat, nccl.ncclSum, 0L, 0L);
        print("result ncclAllReduce(null)", result + " " + nccl.ncclGetLastError(0L));
        configurations();
        deviceApi();
        if (NativeLibrary.gpuCount() == 0) {
            try (PointerPointer<Pointer> cell = new PointerPointer<>(1);
                    ncclUniqueId id = new ncclUniqueId()) {
                nccl.ncclGetUniqueId(id);
                result("ncclCommInitRank", nccl.ncclCommInitRank(cell, 1, id, 0));
                if (NativeLibrary.provides("ncclMemAlloc")) {
                    result("ncclMemAlloc", nccl.ncclMemAlloc(cell, 1024));
                }
            }
        }
    }

    /** Our structures, which may be larger than the library's, and what it reads of them. */
    private static void configurations() {
        if (NativeLibrary.provides("ncclAllReduceConfig")) {
            try (ncclCollConfig_t config = new ncclCollConfig_t()) {
                // The communicator is looked at when the configuration is right.
                print("result ncclAllReduceConfig(null)", allReduce(config) + " " + nccl.ncclGetLastError(0L));
                config.forceAlgSelection(7);
                int result = allReduce(config);
                boolean named = nccl.ncclGetLastError(0L).contains("forceAlgSelection=7");
                print("result ncclAllReduceConfig(forceAlgSelection 7)", result + " named: " + named);
            }
        }
        if (NativeLibrary.provides("ncclSetEncryption")) {
            try (ncclEncryptionConfig_t config = new ncclEncryptionConfig_t()) {
                result("ncclSetEncryption(none)", nccl.ncclSetEncryption(config));
                config.mode(7);
                int result = nccl.ncclSetEncryption(config);
                boolean named = nccl.ncclGetLastError(0L).contains("mode=7");
                print("result ncclSetEncryption(mode 7)", result + " named: " + named);
            }
        }
    }

    private static void deviceApi() {
        try (ncclDevCommRequirements_t requirements = new ncclDevCommRequirements_t();
                ncclDevComm_t device = new ncclDevComm_t();
                ncclCommProperties_t properties = new ncclCommProperties_t()) {
            if (NativeLibrary.provides("ncclDevCommCreate")) {
                String answer;
                try {
                    answer = "" + nccl_device.ncclDevCommCreate(0L, requirements.address(), device.address());
                } catch (NcclLibraryException e) {
                    answer = e.getMessage().contains("takes other structures") ? "takes other structures" : "" + e;
                }
                print("result ncclDevCommCreate(null)", answer);
                int slots = nccl_device.ncclLLA2ACalcSlots(100, 8);
                print("result ncclLLA2ACalcSlots", slots > 0 ? "more than 0" : slots);
            }
            if (NativeLibrary.provides("ncclCommQueryProperties")) {
                result("ncclCommQueryProperties(null)", nccl_device.ncclCommQueryProperties(0L, properties.address()));
                result("ncclGetPeerDevicePointer(null)", nccl_device.ncclGetPeerDevicePointer(0L, 0, 0, 0L));
            }
        }
    }

    private static int allReduce(ncclCollConfig_t config) {
        return nccl.ncclAllReduceConfig(0L, 0L, 1, nccl.ncclFloat, nccl.ncclSum, 0L, 0L, config.address());
    }

    private static void result(String call, int result) {
        print("result " + call, result);
    }

    private static void print(String what, Object answer) {
        System.out.println(what + "\t" + answer);
    }
}
