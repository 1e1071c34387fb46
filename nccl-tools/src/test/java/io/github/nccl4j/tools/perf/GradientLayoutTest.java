package io.github.nccl4j.tools.perf;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.tools.perf.GradientLayout.Bucket;
import java.util.List;
import org.junit.jupiter.api.Test;

class GradientLayoutTest {
    @Test
    void theFullWidthHasBillionsOfElements() {
        GradientLayout full = GradientLayout.ofWidth(4096);
        assertEquals(160, full.count());
        assertEquals(6_476_267_520L, full.total());
        assertEquals(2L * 4096 * 11008, full.longest());
        double quarter = GradientLayout.ofWidth(2048).total() / (double) full.total();
        assertTrue(Math.abs(quarter - 0.25) < 1e-4, "" + quarter);
    }

    @Test
    void aBucketHasOneLongGradientOrSeveralShortOnes() {
        GradientLayout layout = new GradientLayout(List.of(3L, 9L, 4L, 1L, 1L, 5L));
        assertEquals(
                List.of(new Bucket(0, 1, 3), new Bucket(1, 2, 9), new Bucket(2, 5, 6), new Bucket(5, 6, 5)),
                layout.buckets(6));
        assertEquals(6, layout.buckets(1).size());
        assertEquals(List.of(new Bucket(0, 6, 23)), layout.buckets(23));
    }
}
