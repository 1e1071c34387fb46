package io.github.nccl4j.library;

import java.io.IOException;
import org.bytedeco.javacpp.Loader;

/** Describes a failed load of the native code, with the remedy. */
final class LoadProblem {
    private LoadProblem() {}

    static String describe(Throwable error) {
        Throwable reason = error;
        while (reason.getCause() != null) {
            reason = reason.getCause();
        }
        if (reason instanceof IllegalCallerException) {
            return "Java does not let nccl4j load native code (" + reason.getMessage() + "): start it with the option "
                    + "--enable-native-access=" + modules();
        }
        if (reason instanceof ClassNotFoundException || reason instanceof NoClassDefFoundError) {
            return "a class that nccl4j needs is not on the class path: "
                    + reason.getMessage().replace('/', '.')
                    + ". Add org.bytedeco:javacpp and org.bytedeco:cuda in the versions of io.github.nccl4j:nccl's POM";
        }
        ClassLoader loader = NativeLibrary.class.getClassLoader();
        String platform = "/" + Loader.getPlatform() + "/";
        if (loader.getResource("io/github/nccl4j" + platform + "libjninccl4j.so") == null
                || loader.getResource("org/bytedeco/javacpp" + platform + "libjnijavacpp.so") == null) {
            return "nccl4j's native code for " + Loader.getPlatform()
                    + " cannot be loaded. Add io.github.nccl4j:nccl-platform to the class path, or io.github.nccl4j:nccl"
                    + " with the classifier of the platform (linux-x86_64 or linux-arm64)" + modulePathAdvice() + ": "
                    + reason.getMessage();
        }
        return "nccl4j's native code cannot be loaded: " + reason.getMessage() + ". " + cacheAdvice();
    }

    /** The modules that need native access, as the option of the JVM names them. */
    private static String modules() {
        return NativeLibrary.class.getModule().isNamed()
                ? NativeLibrary.class.getModule().getName() + ",org.bytedeco.javacpp,org.bytedeco.cuda"
                : "ALL-UNNAMED";
    }

    static String modulePathAdvice() {
        if (!NativeLibrary.class.getModule().isNamed()) {
            return "";
        }
        return NativeLibrary.class
                        .getResource("NativeLibrary.class")
                        .getProtocol()
                        .equals("jrt")
                ? "; in an image of jlink, its module, and the option --add-modules ALL-SYSTEM at run time"
                : "; with a module path, add the option --add-modules ALL-MODULE-PATH, too";
    }

    /** Part of a message: JavaCPP's cache folder, its requirements, and the property that sets it. */
    static String cacheAdvice() {
        String folder;
        try {
            folder = Loader.getCacheDir().getAbsolutePath();
        } catch (IOException none) {
            folder = "none could be made";
        }
        return "JavaCPP unpacks it into its cache (" + folder + "), which must be writable, but not for other users,"
                + " have free space and not be mounted noexec; name another folder by the system property org.bytedeco.javacpp.cachedir";
    }
}
