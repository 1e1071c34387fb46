package io.github.nccl4j.spark;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Which GPU a task takes; without GPUs. */
class TaskDeviceTest {
    @ParameterizedTest
    @CsvSource(
            nullValues = "-",
            value = {
                "3, -, 4, 3",
                "3, '2,3', 2, 1",
                "GPU-b, 'GPU-a, GPU-b', 2, 1",
                // In a container, where both count from 0.
                "1, '4,5', 2, 1"
            })
    void sparksAddressIsTheNumberWithinWhatIsVisible(String address, String visible, int count, int ordinal) {
        assertEquals(ordinal, TaskDevice.ordinal(new String[] {address}, visible, count));
    }

    @ParameterizedTest
    @CsvSource(
            nullValues = "-",
            value = {
                "4, -, 4, ''",
                "GPU-c, 'GPU-a,GPU-b', 2, ' (CUDA_VISIBLE_DEVICES=GPU-a,GPU-b)'",
                "99999999999, -, 4, ''"
            })
    void anAddressThatTheExecutorDoesNotSeeIsNamed(String address, String visible, int count, String more) {
        String[] addresses = {address};
        IllegalStateException failure =
                assertThrows(IllegalStateException.class, () -> TaskDevice.ordinal(addresses, visible, count));
        assertEquals(
                "Spark gave the task GPU '" + address + "', but the executor sees " + count + " CUDA devices" + more,
                failure.getMessage());
    }

    @Test
    void aTaskHasOneGpu() {
        IllegalStateException failure =
                assertThrows(IllegalStateException.class, () -> TaskDevice.ordinal(new String[] {"0", "1"}, null, 2));
        assertEquals(
                "a rank has one GPU, but Spark gave its task 2 (0, 1): set spark.task.resource.gpu.amount=1",
                failure.getMessage());
    }

    @Test
    void tasksOfAMachineTakeItsGpusOneByOne() {
        List<String> hosts = List.of("a", "b", "a", "b", "a");
        assertEquals(0, TaskDevice.ordinal(hosts, 0, 2));
        assertEquals(0, TaskDevice.ordinal(hosts, 1, 2));
        assertEquals(1, TaskDevice.ordinal(hosts, 2, 2));
        IllegalStateException failure =
                assertThrows(IllegalStateException.class, () -> TaskDevice.ordinal(hosts, 4, 2));
        assertEquals(
                "rank 4 is task 3 on a, but its executor sees 2 CUDA devices: set spark.executor.resource.gpu.amount"
                        + " and spark.task.resource.gpu.amount",
                failure.getMessage());
    }

    @ParameterizedTest
    @CsvSource({"node1:4040, node1", "[::1]:7, [::1]", "node2, node2"})
    void anExecutorsAddressNamesItsHost(String address, String host) {
        assertEquals(host, TaskDevice.hostOf(address));
    }
}
