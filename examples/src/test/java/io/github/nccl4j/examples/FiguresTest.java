package io.github.nccl4j.examples;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.NcclLibrary;
import io.github.nccl4j.highlevel.UniqueId;
import io.github.nccl4j.library.Engine;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.bytedeco.javacpp.LongPointer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** On their check all examples rely. */
@Timeout(60)
class FiguresTest {
    private static String figures(int steps, Runnable step) {
        NcclLibrary.load(Engine.HOST);
        try (Communicator communicator = Communicator.create(UniqueId.create(), 0, 1)) {
            Figures figures = new Figures(2);
            for (int i = 0; i < steps; i++) {
                step.run();
                figures.step(communicator);
            }
            return figures.end(communicator, 3, "samples");
        }
    }

    @Test
    void stepsAfterTheWarmUpAreTimed() {
        String text = figures(7, () -> {
            try {
                Thread.sleep(20);
            } catch (InterruptedException e) {
                throw new IllegalStateException(e);
            }
        });
        Matcher matcher = Pattern.compile(
                        "(\\d+) samples/s\n(\\S+) ms a step of 5, first step \\d.*\nafter 5 steps as before.*")
                .matcher(text);
        assertTrue(matcher.lookingAt(), text);
        double milliseconds = Double.parseDouble(matcher.group(2));
        assertTrue(milliseconds >= 20, text);
        assertEquals(3e3 / milliseconds, Double.parseDouble(matcher.group(1)), 1, text);
    }

    @Test
    void aPointerThatAStepLeavesIsAFailure() {
        List<LongPointer> left = new ArrayList<>();
        try {
            assertThrows(IllegalStateException.class, () -> figures(4, () -> left.add(new LongPointer(1))));
        } finally {
            left.forEach(LongPointer::close);
        }
    }

    @Test
    void aThreadThatAStepLeavesIsAFailure() {
        CountDownLatch end = new CountDownLatch(1);
        try {
            assertThrows(
                    IllegalStateException.class,
                    () -> figures(4, () -> new Thread(() -> {
                                try {
                                    end.await();
                                } catch (InterruptedException ended) {
                                    Thread.currentThread().interrupt();
                                }
                            })
                            .start()));
        } finally {
            end.countDown();
        }
    }
}
