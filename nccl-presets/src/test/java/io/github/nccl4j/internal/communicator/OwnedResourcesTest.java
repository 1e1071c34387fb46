package io.github.nccl4j.internal.communicator;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

class OwnedResourcesTest {
    private boolean mayNeverEnd;
    private final OwnedResources resources = new OwnedResources(() -> mayNeverEnd);
    private final List<String> released = new ArrayList<>();

    /** Records its close under a name, and then throws its problem. */
    @SuppressWarnings("try") // close() throws any exception
    private class Resource implements AutoCloseable {
        final String name;
        private final Exception problem;

        Resource(String name, Exception problem) {
            this.name = name;
            this.problem = problem;
        }

        @Override
        public void close() throws Exception {
            released.add(name);
            if (problem != null) {
                throw problem;
            }
        }
    }

    private final class OfTheCommunicator implements OwnedResources.Dependent {
        private final String name;

        OfTheCommunicator(String name) {
            this.name = name;
        }

        @Override
        public void abandon() {
            released.add(name + " abandoned");
        }

        @Override
        public void close() {
            released.add(name);
        }
    }

    private List<String> takeReleased() {
        List<String> all = List.copyOf(released);
        released.clear();
        return all;
    }

    @Test
    void whatIsKeptIsReleasedWhenTheCommunicatorHasEndedAndAtOnceAfterwards() {
        resources.keepUntilEnded(() -> released.add("before"));
        assertEquals(List.of(), released);
        resources.takeKept().forEach(Runnable::run);
        assertEquals(List.of("before"), released);
        resources.keepUntilEnded(() -> released.add("after"));
        assertEquals(List.of("before", "after"), released);
        assertEquals(List.of(), resources.takeKept());
    }

    @Test
    void graphsAreClosedFirstAndThenTheNewestResource() {
        resources.own(new Resource("first", null));
        resources.own(new Resource("second", null));
        Resource graph = new Resource("graph", null);
        assertTrue(resources.addGraph(graph));
        assertFalse(resources.addGraph(graph));
        assertNull(resources.closeAll());
        assertEquals(List.of("graph", "second", "first"), takeReleased());
        resources.removeGraph(graph);
        assertNull(resources.closeAll());
        assertEquals(List.of(), released);
    }

    @Test
    void aResourceThatCannotBeClosedIsReportedAndKept() {
        RuntimeException first = new IllegalStateException("first");
        RuntimeException second = new IllegalArgumentException("second");
        RuntimeException graph = new UnsupportedOperationException("graph");
        resources.own(new Resource("first", first));
        resources.own(new Resource("good", null));
        resources.own(new Resource("second", second));
        resources.addGraph(new Resource("graph", graph));
        assertSame(graph, resources.closeAll());
        assertArrayEquals(new Throwable[] {second, first}, graph.getSuppressed());
        assertEquals(List.of("graph", "second", "good", "first"), takeReleased());
        resources.closeAll();
        assertEquals(List.of("graph", "second", "first"), released);
    }

    @Test
    void aCheckedExceptionIsTheCauseOfTheReportedOne() {
        IOException problem = new IOException("problem");
        resources.own(new Resource("resource", problem));
        assertSame(problem, resources.closeAll().getCause());
    }

    @Test
    void nothingIsClosedIfThatMayNeverEnd() {
        resources.own(new Resource("resource", null));
        mayNeverEnd = true;
        assertNull(resources.closeAll());
        assertEquals(List.of(), released);
        mayNeverEnd = false;
        resources.closeAll();
        assertEquals(List.of("resource"), released);
    }

    @Test
    void onlyResourcesOfTheNativeCommunicatorAreAbandoned() {
        resources.own(new OfTheCommunicator("window"));
        resources.own(new Resource("child", null));
        resources.own(new OfTheCommunicator("plan"));
        assertNull(resources.closeAll());
        assertEquals(List.of("plan", "child", "window"), takeReleased());
        resources.own(new Resource("child", null));
        resources.abandonAll();
        assertEquals(List.of("plan abandoned", "window abandoned"), takeReleased());
        resources.abandonAll();
        resources.closeAll();
        assertEquals(List.of(), released);
    }

    @Test
    void resourcesOfATypeAreListedNewestFirst() {
        Resource first = new Resource("first", null);
        Resource second = new Resource("second", null);
        OfTheCommunicator window = new OfTheCommunicator("window");
        resources.own(first);
        resources.own(window);
        resources.own(second);
        assertEquals(List.of(second, first), resources.owned(Resource.class));
        resources.disown(second);
        assertEquals(List.of(window, first), resources.owned(AutoCloseable.class));
    }
}
