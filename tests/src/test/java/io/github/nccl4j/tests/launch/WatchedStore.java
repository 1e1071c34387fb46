package io.github.nccl4j.tests.launch;

import io.github.nccl4j.launch.Rendezvous;
import io.github.nccl4j.launch.Store;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.util.Set;
import java.util.function.Consumer;

/** A store that tells the test of each call, also of its scopes, before it is made. What the test throws, the call throws. */
public final class WatchedStore {
    private static final Set<String> CALLS =
            Set.of("set", "get", "await", "add", "delete", "attempts", "gather", "broadcast", "barrier");

    private WatchedStore() {}

    /** Returns a store that passes the name and the key of each call to the test. */
    public static Store of(Store store, Consumer<String> before) {
        return watched(Store.class, store, before);
    }

    private static <T extends Rendezvous> T watched(Class<T> type, Rendezvous target, Consumer<String> before) {
        return type.cast(
                Proxy.newProxyInstance(type.getClassLoader(), new Class<?>[] {type}, (proxy, method, arguments) -> {
                    if (CALLS.contains(method.getName())) {
                        before.accept(method.getName() + (arguments == null ? "" : " " + arguments[0]));
                    }
                    try {
                        Object result = method.invoke(target, arguments);
                        return result instanceof Rendezvous scope ? watched(Rendezvous.class, scope, before) : result;
                    } catch (InvocationTargetException failure) {
                        throw failure.getCause();
                    }
                }));
    }
}
