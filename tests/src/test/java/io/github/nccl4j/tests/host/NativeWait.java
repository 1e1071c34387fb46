package io.github.nccl4j.tests.host;

import io.github.nccl4j.testing.Waiting;
import io.github.nccl4j.tools.support.Threads;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;

/** A thread that is about to make a native call which waits, for other threads to see that it does. */
record NativeWait(Thread thread, Path status) {

    static NativeWait ofThisThread() throws IOException {
        Path task = Files.readSymbolicLink(Path.of("/proc/thread-self"));
        return new NativeWait(
                Thread.currentThread(), Path.of("/proc").resolve(task).resolve("stat"));
    }

    /** Returns when the thread sleeps inside the function. */
    void await(String function) {
        Waiting.until("a thread asleep in " + function, () -> isIn(function) && isAsleep() && isIn(function));
    }

    /** Makes a call in a thread of its own when the thread sleeps inside the function. */
    <T> CompletableFuture<T> whenInside(String function, Callable<T> call) {
        CompletableFuture<T> result = new CompletableFuture<>();
        Threads.EACH.execute(() -> {
            try {
                await(function);
                result.complete(call.call());
            } catch (Throwable e) {
                result.completeExceptionally(e);
            }
        });
        return result;
    }

    private boolean isIn(String function) {
        StackTraceElement[] stack = thread.getStackTrace();
        return stack.length > 0
                && stack[0].isNativeMethod()
                && stack[0].getMethodName().equals(function);
    }

    /** The state is the word behind the name, which may have any characters, in parentheses. */
    private boolean isAsleep() throws IOException {
        String text = Files.readString(status);
        return text.startsWith("S", text.lastIndexOf(')') + 2);
    }
}
