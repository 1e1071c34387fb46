package io.github.nccl4j.tests.highlevel;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.github.nccl4j.header.Field;
import io.github.nccl4j.highlevel.AlgorithmSelection;
import io.github.nccl4j.highlevel.CollectiveConfig;
import io.github.nccl4j.highlevel.CollectiveConfig.Builder;
import io.github.nccl4j.highlevel.CollectiveConfig.VendorOption;
import io.github.nccl4j.highlevel.CtaPolicy;
import io.github.nccl4j.highlevel.CudaEvent;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.NcclLibrary;
import io.github.nccl4j.tests.PackagedHeader;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Function;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Configurations of single collectives and selections of algorithms as values: what they take and refuse. */
class CollectiveConfigTest {
    private static Builder full(CudaEvent event) {
        return CollectiveConfig.builder()
                .vendorOption(1, 2, 3)
                .minCtas(1)
                .maxCtas(64)
                .nvlsCtas(2)
                .cgaClusterSize(8)
                .preferAlgorithm(AlgorithmSelection.RING)
                .ctaPolicy(CtaPolicy.EFFICIENCY)
                .profilerTag(Long.MAX_VALUE)
                .launchCompletionEvent(event);
    }

    @Test
    void everyFieldOfTheHeaderCanBeSet() {
        List<String> fields = PackagedHeader.parse().structs().get("ncclCollConfig_t").fields().stream()
                .map(Field::name)
                .filter(name -> !List.of("size", "magic", "version").contains(name))
                .toList();
        assertEquals(10, fields.size());
        try (CudaEvent event = CudaEvent.create(Device.host())) {
            CollectiveConfig config = full(event).build();
            assertEquals(fields, new ArrayList<>(config.values().keySet()));
            assertEquals(event, config.values().get("launchCompletionEvent"));
            assertEquals(List.of(new VendorOption(1, 2, 3)), config.values().get("ext"));
            config.requireSupportedBy(NcclLibrary.get());
        }
    }

    @Test
    void configurationsAreValues() {
        try (CudaEvent event = CudaEvent.create(Device.host());
                CudaEvent other = CudaEvent.create(Device.host())) {
            assertEquals(full(event).build(), full(event).build());
            assertEquals(full(event).build().hashCode(), full(event).build().hashCode());
            assertNotEquals(full(event).build(), full(other).build());
        }
        CollectiveConfig ring = CollectiveConfig.algorithm("ring");
        assertEquals(ring, CollectiveConfig.builder().algorithm("RING").build());
        assertNotEquals(ring, CollectiveConfig.builder().preferAlgorithm("ring").build());
        assertEquals("CollectiveConfig{algSelection=ring}", ring.toString());
        assertEquals(
                "CollectiveConfig{ext=[7/1=fast, 7/2=-1, 7/3=0x10], maxCTAs=4, algSelection=tree, forceAlgSelection=false}",
                CollectiveConfig.builder()
                        .preferAlgorithm("tree")
                        .maxCtas(4)
                        .vendorOption(7, 1, "fast")
                        .vendorOption(7, 2, -1)
                        .vendorAddress(7, 3, 16)
                        .build()
                        .toString());
        assertThrows(UnsupportedOperationException.class, () -> ring.values().clear());
        assertEquals("{}", CollectiveConfig.builder().build().values().toString());
    }

    @Test
    void aBuilderThatGoesOnChangesNothing() {
        Builder builder = CollectiveConfig.builder().maxCtas(1).vendorOption(1, 1, 1);
        CollectiveConfig first = builder.build();
        builder.maxCtas(2).vendorOption(1, 1, 2).vendorOption(1, 2, 3);
        assertEquals("CollectiveConfig{ext=[1/1=1], maxCTAs=1}", first.toString());
        assertEquals(
                "CollectiveConfig{ext=[1/1=2, 1/2=3], maxCTAs=2}",
                builder.build().toString());
        Builder again = first.toBuilder().profilerTag(4);
        assertEquals(
                "CollectiveConfig{ext=[1/1=1], maxCTAs=1, userProfilerTag=4}",
                again.build().toString());
        assertEquals("CollectiveConfig{ext=[1/1=1], maxCTAs=1}", first.toString());
        // A selection that is forced again is not preferred any more.
        assertEquals(
                CollectiveConfig.algorithm("tree"),
                CollectiveConfig.builder()
                        .preferAlgorithm("ring")
                        .algorithm("tree")
                        .build());
    }

    private static Arguments refused(Function<Builder, Builder> wrong, String message) {
        return Arguments.of(wrong, message);
    }

    static Stream<Arguments> wrongValues() {
        return Stream.of(
                refused(b -> b.minCtas(0), "minCTAs must be in 1..64: 0"),
                refused(b -> b.minCtas(65), "minCTAs must be in 1..64: 65"),
                refused(b -> b.maxCtas(0), "maxCTAs must be in 1..64: 0"),
                refused(b -> b.maxCtas(65), "maxCTAs must be in 1..64: 65"),
                refused(b -> b.minCtas(5).maxCtas(4), "minCTAs must be <= maxCTAs: 5 > 4"),
                refused(b -> b.nvlsCtas(0), "nvlsCTAs must be in 1..64: 0"),
                refused(b -> b.nvlsCtas(65), "nvlsCTAs must be in 1..64: 65"),
                refused(b -> b.cgaClusterSize(-1), "cgaClusterSize must be in 0..8: -1"),
                refused(b -> b.cgaClusterSize(9), "cgaClusterSize must be in 0..8: 9"),
                refused(
                        b -> b.profilerTag(-1),
                        "userProfilerTag must be >= 0, its most significant bit is reserved: -1"),
                refused(
                        b -> b.profilerTag(Long.MIN_VALUE),
                        "userProfilerTag must be >= 0, its most significant bit is reserved: -9223372036854775808"),
                refused(b -> b.vendorOption(0, 9, 1), "vendorId must be in 1..16777215: 0, option 9"),
                refused(b -> b.vendorOption(1 << 24, 9, ""), "vendorId must be in 1..16777215: 16777216, option 9"),
                refused(b -> b.vendorAddress(-1, 9, 1), "vendorId must be in 1..16777215: -1, option 9"),
                refused(
                        b -> b.vendorOption(3, 4, "a\0b"),
                        "the text of option 3/4 must have no NUL character: 'a\\0b'"),
                refused(b -> b.algorithm(" "), "selection must name an algorithm: ' '"));
    }

    @ParameterizedTest
    @MethodSource("wrongValues")
    void wrongValuesAreRefusedWithTheirRange(Function<Builder, Builder> wrong, String message) {
        IllegalArgumentException refusal =
                assertThrows(IllegalArgumentException.class, () -> wrong.apply(CollectiveConfig.builder())
                        .build());
        assertEquals(message, refusal.getMessage());
    }

    @Test
    void theValueOfAnOptionHasOneOfThreeTypes() {
        IllegalArgumentException refusal =
                assertThrows(IllegalArgumentException.class, () -> new VendorOption(3, 4, 1.5));
        assertEquals(
                "the value of option 3/4 must be an Integer, a String or a Long: java.lang.Double",
                refusal.getMessage());
    }

    @Test
    void limitsAreTaken() {
        assertEquals(
                "CollectiveConfig{ext=[16777215/-1=0x0], minCTAs=64, nvlsCTAs=64, cgaClusterSize=0, userProfilerTag=0}",
                CollectiveConfig.builder()
                        .vendorAddress((1 << 24) - 1, -1, 0)
                        .minCtas(64)
                        .nvlsCtas(64)
                        .cgaClusterSize(0)
                        .profilerTag(0)
                        .build()
                        .toString());
    }

    @Test
    void nullsAreRefused() {
        Builder builder = CollectiveConfig.builder();
        assertThrows(NullPointerException.class, () -> builder.algorithm((String) null));
        assertThrows(NullPointerException.class, () -> builder.algorithm((AlgorithmSelection) null));
        assertThrows(NullPointerException.class, () -> builder.preferAlgorithm((AlgorithmSelection) null));
        assertThrows(NullPointerException.class, () -> builder.ctaPolicy(null));
        assertThrows(NullPointerException.class, () -> builder.launchCompletionEvent(null));
        assertThrows(NullPointerException.class, () -> builder.vendorOption(1, 1, null));
        assertThrows(NullPointerException.class, () -> builder.build().requireSupportedBy(null));
        assertEquals("{}", builder.build().values().toString());
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "ring|ring",
                "Tree_LL128|tree_ll128",
                "' tree , ring\t'|tree,ring",
                "ring+^ring_ll|ring+^ring_ll",
                "^symk|^symk",
                "nvls,,ring,|nvls,ring",
                "ring,ring|ring",
            })
    void selectionsAreRead(String text, String normal) {
        assertEquals(normal, AlgorithmSelection.of(text).toString());
        assertEquals(AlgorithmSelection.of(normal), AlgorithmSelection.of(text));
        assertEquals(
                AlgorithmSelection.of(normal).hashCode(),
                AlgorithmSelection.of(text).hashCode());
    }

    @ParameterizedTest
    @ValueSource(strings = {"^", "ring,+", "ring+", "+ring", "^^ring", "ring;tree", "ring.ll", "a\0b", "ring+^"})
    void textsThatAreNoSelection(String text) {
        IllegalArgumentException refusal =
                assertThrows(IllegalArgumentException.class, () -> AlgorithmSelection.of(text));
        assertEquals(
                "selection must have names of letters, digits and '_', with ',' for or, '+' for and, '^' for not: '"
                        + text.replace("\0", "\\0") + "'",
                refusal.getMessage());
    }

    @ParameterizedTest
    @ValueSource(strings = {"", " \t", ",", " , ,"})
    void textsWithoutAName(String text) {
        IllegalArgumentException refusal =
                assertThrows(IllegalArgumentException.class, () -> AlgorithmSelection.of(text));
        assertEquals("selection must name an algorithm: '" + text + "'", refusal.getMessage());
    }

    @Test
    void selectionsAreCombined() {
        AlgorithmSelection ringOrTree = AlgorithmSelection.RING.or(AlgorithmSelection.TREE);
        AlgorithmSelection ll = AlgorithmSelection.of("ring_ll");
        assertEquals("ring,tree", ringOrTree.toString());
        assertEquals("ring+ring_ll,tree+ring_ll", ringOrTree.and(ll).toString());
        assertEquals("^ring+^tree", ringOrTree.not().toString());
        assertEquals(
                "^ring,ring_ll", AlgorithmSelection.of("ring+^ring_ll").not().toString());
        assertEquals(ringOrTree, ringOrTree.not().not());
        assertEquals(
                "ring", AlgorithmSelection.RING.and(AlgorithmSelection.RING).toString());
        assertEquals("^symk", AlgorithmSelection.SYMMETRIC.not().toString());
    }

    @Test
    void theNamedOnesAreBeginningsOfNames() {
        assertEquals(
                List.of("ring", "tree", "collnet_direct", "collnet_chain", "nvls_", "nvlstree", "pat", "symk"),
                Stream.of(
                                AlgorithmSelection.RING,
                                AlgorithmSelection.TREE,
                                AlgorithmSelection.COLLNET_DIRECT,
                                AlgorithmSelection.COLLNET_CHAIN,
                                AlgorithmSelection.NVLS,
                                AlgorithmSelection.NVLS_TREE,
                                AlgorithmSelection.PAT,
                                AlgorithmSelection.SYMMETRIC)
                        .map(AlgorithmSelection::toString)
                        .toList());
    }
}
