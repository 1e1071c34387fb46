package io.github.nccl4j.zookeeper;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.launch.LostRank;
import io.github.nccl4j.launch.RankInfo;
import io.github.nccl4j.launch.Rendezvous;
import io.github.nccl4j.launch.RendezvousException;
import io.github.nccl4j.launch.RendezvousTimeoutException;
import io.github.nccl4j.launch.Store;
import io.github.nccl4j.testing.Waiting;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.Collections;
import java.util.HexFormat;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.logging.Filter;
import java.util.logging.Logger;
import org.apache.curator.framework.imps.CuratorFrameworkState;
import org.apache.curator.test.InstanceSpec;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.ZooDefs;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.data.ACL;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Ranks that meet at an ensemble of three servers. */
@Timeout(value = 5, unit = TimeUnit.MINUTES, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class ZooKeeperStoreTest {
    private static final Duration LIMIT = Ensemble.LIMIT;

    /** Clients of other users, and of administrators. */
    private final List<ZooKeeper> clients = new ArrayList<>();

    @AutoClose
    private static Ensemble ensemble;

    @BeforeAll
    static void start() throws Exception {
        ensemble = new Ensemble();
    }

    @AfterEach
    void closeClients() throws InterruptedException {
        for (ZooKeeper client : clients) {
            client.close();
        }
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    private static List<String> texts(List<byte[]> values) {
        return values.stream()
                .map(value -> new String(value, StandardCharsets.UTF_8))
                .toList();
    }

    /** The nodes of a job below the base. */
    private static List<String> nodes() {
        try (ZooKeeperStore observer = ensemble.open("observer", 0, 1)) {
            return observer.session().children(Job.BASE).stream()
                    .filter(node -> !node.equals(Text.node("observer-0")))
                    .toList();
        }
    }

    @Test
    void ranksMeetAndLeaveNothing() throws Exception {
        String job = ensemble.job();
        List<List<String>> all = ensemble.run(job, 4, store -> {
            List<String> results = new ArrayList<>();
            for (int use = 0; use < 3; use++) {
                results.addAll(texts(store.gather("value", bytes(store.rank() + "." + use), LIMIT)));
            }
            store.barrier("same", LIMIT);
            byte[] fromTwo = store.broadcast("two", 2, () -> bytes("of " + store.rank()), LIMIT);
            results.add(new String(fromTwo, StandardCharsets.UTF_8));
            Rendezvous scope = store.scope("inner");
            results.addAll(texts(scope.gather("value", bytes("s" + store.rank()), LIMIT)));
            store.barrier("end", LIMIT);
            return results;
        });
        List<String> expected = List.of(
                "0.0", "1.0", "2.0", "3.0", "0.1", "1.1", "2.1", "3.1", "0.2", "1.2", "2.2", "3.2", "of 2", "s0", "s1",
                "s2", "s3");
        assertEquals(Collections.nCopies(4, expected), all);
        assertEquals(
                List.of(),
                nodes().stream().filter(node -> node.startsWith(Text.node(job))).toList());
    }

    /** Nodes of gathers are deleted when all ranks have returned, not only at the end of the job. */
    @Test
    void gathersAreDeletedWhileTheJobRuns() throws Exception {
        ensemble.run(ensemble.job(), 3, store -> {
            for (int i = 0; i < 10; i++) {
                store.barrier("step" + i, LIMIT);
            }
            Waiting.until("end of all gathers", () -> store.session()
                    .children(store.job().folder("gathers"))
                    .isEmpty());
            Waiting.until(
                    "end of all marks",
                    () -> store.session().children(store.job().folder("marks")).isEmpty());
            // Those of the last call are deleted after it.
            store.set("seen-" + store.rank(), new byte[0]);
            store.await(List.of("seen-0", "seen-1", "seen-2"), LIMIT);
            return null;
        });
    }

    /** More than a node holds. */
    @Test
    void longestValues() throws Exception {
        int size = 20;
        byte[] value = new byte[Rendezvous.LONGEST_VALUE];
        ensemble.run(ensemble.job(), size, store -> {
            byte[] mine = value.clone();
            Arrays.fill(mine, (byte) store.rank());
            List<byte[]> all = store.gather("long", mine, LIMIT);
            for (int rank = 0; rank < size; rank++) {
                byte[] expected = value.clone();
                Arrays.fill(expected, (byte) rank);
                assertArrayEquals(expected, all.get(rank));
            }
            store.barrier("end", LIMIT);
            return null;
        });
    }

    @Test
    void missingRankIsNamed() throws Exception {
        String job = ensemble.job();
        List<Future<List<Integer>>> running = new ArrayList<>();
        for (int rank = 0; rank < 2; rank++) {
            int self = rank;
            running.add(ensemble.submit(() -> {
                try (ZooKeeperStore store = ensemble.open(job, self, 3)) {
                    RendezvousTimeoutException late = assertThrows(
                            RendezvousTimeoutException.class,
                            () -> store.barrier("start", self == 0 ? LIMIT : Duration.ofSeconds(2)));
                    assertEquals(
                            "2 of 3 ranks arrived at 'start' within 2 s; missing: rank 2; never connected: rank 2",
                            late.getMessage());
                    return late.missing();
                }
            }));
        }
        for (Future<List<Integer>> rank : running) {
            assertEquals(List.of(2), Ensemble.result(rank));
        }
    }

    /** The first rank, which combines the values, may have stopped after its arrival. */
    @Test
    void aRankCombinesTheValuesAtItsLimitIfAllRanksHaveArrived() throws Exception {
        String job = ensemble.job();
        try (ZooKeeperStore first = ensemble.open(job, 0, 2);
                ZooKeeperStore second = ensemble.open(job, 1, 2)) {
            String call = first.job().folder("gathers") + "/" + Text.node("key") + "-1";
            first.session().createWithParents(call, bytes("ranks 0, 1"));
            first.session().createWithParents(call + "/0", bytes("of rank 0"));
            assertEquals(
                    List.of("of rank 0", "of rank 1"),
                    texts(second.gather("key", bytes("of rank 1"), Duration.ofSeconds(1))));
        }
    }

    @Test
    void wrongArgumentsAreRefused() throws Exception {
        String job = ensemble.job();
        RankInfo nameless = Ensemble.rank("", 0, 1);
        assertTrue(assertThrows(
                        IllegalArgumentException.class, () -> ensemble.builder().open(nameless))
                .getMessage()
                .contains("NCCL4J_JOB"));
        assertThrows(IllegalArgumentException.class, () -> ensemble.builder().secret(new byte[15]));
        assertEquals(
                "sessionTimeout must be > 0: -0.25 s",
                assertThrows(IllegalArgumentException.class, () -> ensemble.builder()
                                .sessionTimeout(Duration.ofMillis(-250)))
                        .getMessage());
        assertThrows(IllegalArgumentException.class, () -> ensemble.builder().timeout(Duration.ZERO));
        try (ZooKeeperStore store = ensemble.open(job, 1, 4)) {
            String two = assertThrows(RendezvousException.class, () -> ensemble.open(job, 0, 5))
                    .getMessage();
            assertTrue(two.contains("expects 5 ranks with local ranks") && two.contains("has 4 ranks"), two);
            assertThrows(IllegalArgumentException.class, () -> store.gather("", new byte[0], LIMIT));
            assertThrows(
                    IllegalArgumentException.class,
                    () -> store.gather("key", new byte[Rendezvous.LONGEST_VALUE + 1], LIMIT));
            assertThrows(IllegalArgumentException.class, () -> store.barrier("key", Duration.ofSeconds(-1)));
            assertEquals(
                    "a key with its scopes must have <= 1024 bytes: 1025",
                    assertThrows(IllegalArgumentException.class, () -> store.scope("s")
                                    .barrier("a".repeat(1023), LIMIT))
                            .getMessage());
        }
    }

    /** All calls of a rank in an aborted scope have the same reason, whatever becomes of its node. */
    @Test
    void reasonOfAnAbortIsReadOnce() throws Exception {
        String job = ensemble.job();
        try (ZooKeeperStore zero = ensemble.open(job, 0, 2);
                ZooKeeperStore one = ensemble.open(job, 1, 2)) {
            zero.scope("a").abort("first");
            assertAborted("first", one, "a");
            one.session().write(one.job().folder("aborts") + "/" + Text.node("a/"), bytes("another"));
            // When a rank knows the last abort, it has read all nodes after the one before.
            for (String scope : List.of("b", "c")) {
                zero.scope(scope).abort(scope);
                assertAborted(scope, one, scope);
            }
            assertAborted("first", one, "a");
        }
    }

    private static void assertAborted(String reason, Store store, String scope) {
        assertEquals(
                reason,
                assertThrows(RendezvousException.class, () -> store.scope(scope).barrier("start", LIMIT))
                        .getMessage());
    }

    @Test
    void unreachableEnsembleIsATimeout() {
        RendezvousTimeoutException late =
                assertThrows(RendezvousTimeoutException.class, () -> ZooKeeperStore.builder("127.0.0.1:1")
                        .timeout(Duration.ofSeconds(1))
                        .open(Ensemble.rank("none", 0, 1)));
        assertTrue(late.getMessage().contains("127.0.0.1:1"), late.getMessage());
        Waiting.until(
                "end of the threads of the store that could not be opened",
                () -> clientThreads().isEmpty(),
                Duration.ofSeconds(30));
    }

    /** Both processes are named; the first one goes on. */
    @Test
    void secondProcessOfARankIsRefused() throws Exception {
        String job = ensemble.job();
        try (ZooKeeperStore first =
                ensemble.builder().sessionTimeout(Ensemble.SHORT_SESSION).open(Ensemble.rank(job, 0, 1))) {
            String refused = assertThrows(RendezvousException.class, () -> ensemble.builder()
                            .sessionTimeout(Ensemble.SHORT_SESSION)
                            .open(Ensemble.rank(job, 0, 1)))
                    .getMessage();
            assertEquals(3, refused.split("process " + ProcessHandle.current().pid(), -1).length, refused);
            first.barrier("goes on", LIMIT);
            assertEquals(List.of(0), first.attempts());
        }
    }

    /** As the store's documentation says: a rank that returns is the next attempt, and scopes name it. */
    @Test
    void nextProcessTakesThePlaceOfOneThatHasEnded() throws Exception {
        String job = ensemble.job();
        try (ZooKeeperStore stays = ensemble.open(job, 0, 2)) {
            ZooKeeperStore ends = ensemble.open(job, 1, 2);
            assertEquals(List.of(0, 0), stays.attempts());
            Future<String> waits =
                    ensemble.submit(() -> assertThrows(RendezvousException.class, () -> stays.barrier("both", LIMIT))
                            .getMessage());
            ends.session().close();
            String lost = Ensemble.result(waits);
            assertTrue(
                    lost.matches("'both': rank 1 \\(.*, process "
                            + ProcessHandle.current().pid() + "\\) is lost"),
                    lost);
            assertEquals(List.of(0, -1), stays.attempts());
            try (ZooKeeperStore back = ensemble.open(job, 1, 2)) {
                assertEquals(1, back.attempt());
                assertEquals(List.of(0, 1), stays.attempts());
                Future<List<byte[]>> other = ensemble.submit(
                        () -> stays.among("two", List.of(1, 0), List.of(1, 0)).gather("value", bytes("stays"), LIMIT));
                Rendezvous both = back.among("two", List.of(1, 0), List.of(1, 0));
                assertEquals(0, both.rank());
                assertEquals(List.of("back", "stays"), texts(both.gather("value", bytes("back"), LIMIT)));
                assertEquals(List.of("back", "stays"), texts(Ensemble.result(other)));
                assertTrue(assertThrows(RendezvousException.class, () -> stays.barrier("all", LIMIT))
                        .getMessage()
                        .contains("rank 1 was lost, and "));
                assertThrows(RendezvousException.class, () -> back.barrier("all", LIMIT));
            }
            assertTrue(assertThrows(RendezvousException.class, () -> stays.among("two", List.of(0, 1), List.of(0, 1))
                            .barrier("end", LIMIT))
                    .getMessage()
                    .endsWith("has closed its store"));
        }
    }

    /** The rank that has yet to arrive may have failed because of the loss, and then never arrives. */
    @Test
    void lossOfARankThatHasArrivedEndsTheWait() throws Exception {
        String job = ensemble.job();
        try (ZooKeeperStore zero = ensemble.open(job, 0, 3);
                ZooKeeperStore one = ensemble.open(job, 1, 3)) {
            ZooKeeperStore two = ensemble.open(job, 2, 3);
            Future<String> waits =
                    ensemble.submit(() -> assertThrows(RendezvousException.class, () -> one.barrier("all", LIMIT))
                            .getMessage());
            Future<RendezvousException> arrives =
                    ensemble.submit(() -> assertThrows(RendezvousException.class, () -> two.barrier("all", LIMIT)));
            String barrier = zero.job().folder("gathers") + "/" + Gathers.name("all", List.of()) + "-1";
            Waiting.until(
                    "arrival of both", () -> zero.session().children(barrier).containsAll(List.of("1", "2")));
            two.session().close();
            String lost = Ensemble.result(waits);
            assertTrue(lost.matches("'all': rank 2 \\(.*\\) is lost"), lost);
            Ensemble.result(arrives);
            // A rank that comes late gets the same failure.
            assertEquals(
                    lost,
                    assertThrows(RendezvousException.class, () -> zero.barrier("all", LIMIT))
                            .getMessage());
        }
    }

    @Test
    void abortReachesRanksThatWaitAndThoseThatJoinLater() throws Exception {
        String job = ensemble.job();
        ZooKeeperStore one = ensemble.open(job, 1, 3);
        Future<String> waits =
                ensemble.submit(() -> assertThrows(RendezvousException.class, () -> one.get("never", LIMIT))
                        .getMessage());
        try (ZooKeeperStore two = ensemble.open(job, 2, 3)) {
            two.abort("device 2 is broken");
        }
        assertEquals("device 2 is broken", Ensemble.result(waits));
        // The last connected rank stays until rank 0 has joined.
        Future<?> closes = ensemble.submit(() -> {
            one.close();
            return null;
        });
        try (ZooKeeperStore zero = ensemble.open(job, 0, 3)) {
            assertEquals(
                    "device 2 is broken",
                    assertThrows(RendezvousException.class, () -> zero.barrier("start", LIMIT))
                            .getMessage());
        }
        Ensemble.result(closes);
    }

    @Test
    void ranksMustPassTheSameRanks() throws Exception {
        ensemble.run(ensemble.job(), 3, store -> {
            if (store.rank() == 0) {
                Rendezvous two = store.among("some", List.of(0, 1), List.of(0, 0));
                assertThrows(RendezvousTimeoutException.class, () -> two.barrier("start", Duration.ofSeconds(1)));
            }
            store.barrier("first", LIMIT);
            if (store.rank() == 1) {
                Rendezvous three = store.among("some", List.of(0, 1, 2), List.of(0, 0, 0));
                assertEquals(
                        "ranks must make the same call with key 'some/start': rank 1 with ranks 0, 1, 2, others with ranks 0, 1",
                        assertThrows(RendezvousException.class, () -> three.barrier("start", LIMIT))
                                .getMessage());
            }
            store.barrier("end", LIMIT);
            return null;
        });
    }

    @Test
    void abortOfAScopeLeavesOthers() throws Exception {
        ensemble.run(ensemble.job(), 2, store -> {
            if (store.rank() == 0) {
                store.scope("broken").abort("the reason");
            } else {
                assertEquals(
                        "the reason",
                        assertThrows(RendezvousException.class, () -> store.scope("broken")
                                        .barrier("start", LIMIT))
                                .getMessage());
            }
            store.scope("other").barrier("start", LIMIT);
            store.barrier("end", LIMIT);
            return null;
        });
    }

    @Test
    void strangersCanNotUseAJobWithASecret() throws Exception {
        String job = ensemble.job();
        byte[] secret = bytes("0123456789abcdef");
        try (ZooKeeperStore store = ensemble.builder().secret(secret).open(Ensemble.rank(job, 0, 2))) {
            store.set("key", bytes("value"));
            for (ZooKeeperStore.Builder stranger :
                    List.of(ensemble.builder(), ensemble.builder().secret(bytes("fedcba9876543210")))) {
                String refused = assertThrows(RendezvousException.class, () -> stranger.open(Ensemble.rank(job, 1, 2)))
                        .getMessage();
                assertTrue(refused.contains("secret"), refused);
            }
            try (ZooKeeperStore outside = ensemble.open(ensemble.job(), 0, 1)) {
                String key = store.job().folder("keys") + "/" + Text.node("key");
                assertThrows(RendezvousException.class, () -> outside.session().read(key));
                assertThrows(RendezvousException.class, () -> outside.session().write(key, new byte[0]));
                assertThrows(RendezvousException.class, () -> outside.session()
                        .deleteTree(store.job().ranks()));
            }
            assertNoneIsOpen(store, store.job().ranks().replace("/ranks", ""));
            try (ZooKeeperStore other = ensemble.builder().secret(secret).open(Ensemble.rank(job, 1, 2))) {
                assertEquals("value", new String(other.get("key", LIMIT), StandardCharsets.UTF_8));
            }
        }
    }

    /** An HMAC-SHA256 implementation other than Java's computed the expected value. */
    @Test
    void ensembleGetsADerivedKey() throws Exception {
        byte[] secret = bytes("0123456789abcdef");
        assertEquals(
                "349538b6c5b929804a6246549bb42fc512e1ec85aef8f0222a9bc06b7cfd67ef",
                HexFormat.of().formatHex(Access.key(secret)));
        ZooKeeper client = client("");
        try (ZooKeeperStore store = ensemble.builder().secret(secret).open(Ensemble.rank(ensemble.job(), 0, 1))) {
            client.addAuthInfo("digest", bytes("nccl4j:" + Base64.getEncoder().encodeToString(secret)));
            String ranks = store.job().ranks();
            assertThrows(KeeperException.NoAuthException.class, () -> client.getData(ranks, false, null));
            client.addAuthInfo("digest", bytes("nccl4j:" + Base64.getEncoder().encodeToString(Access.key(secret))));
            client.getData(ranks, false, null);
        }
    }

    /** A client of the ensemble without a secret, below a path. */
    private ZooKeeper client(String path) throws Exception {
        CountDownLatch connected = new CountDownLatch(1);
        ZooKeeper client = new ZooKeeper(ensemble.addresses() + path, 20_000, event -> connected.countDown());
        clients.add(client);
        assertTrue(connected.await(LIMIT.toSeconds(), TimeUnit.SECONDS));
        return client;
    }

    /** A client below a new node, which has nothing of other tests. */
    private ZooKeeper clientBelow(String path) throws Exception {
        client("").create(path, new byte[0], ZooDefs.Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
        return client(path);
    }

    private static ZooKeeperStore openBelow(String path, String job) {
        return ZooKeeperStore.builder(ensemble.addresses() + path)
                .timeout(LIMIT)
                .secret(bytes("0123456789abcdef"))
                .open(Ensemble.rank(job, 0, 1));
    }

    @Test
    void strangersCanNotTakeTheNodeOfAllJobs() throws Exception {
        ZooKeeper stranger = clientBelow("/take");
        openBelow("/take", "first").close();
        assertNotAdministered(stranger);
        openBelow("/take", "second").close();
    }

    /** A list that an administrator or another user has left open. */
    @Test
    void openListOfTheNodeOfAllJobsIsClosed() throws Exception {
        ZooKeeper stranger = clientBelow("/open");
        stranger.create(Job.BASE, new byte[0], ZooDefs.Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
        openBelow("/open", "first").close();
        assertNotAdministered(stranger);
    }

    private static void assertNotAdministered(ZooKeeper stranger) {
        assertThrows(
                KeeperException.NoAuthException.class,
                () -> stranger.setACL(Job.BASE, ZooDefs.Ids.READ_ACL_UNSAFE, -1));
    }

    @Test
    void nodesOfAnotherUserAreRefused() throws Exception {
        String path = "/foreign";
        ZooKeeper stranger = clientBelow(path);
        stranger.addAuthInfo("digest", bytes("another:user"));
        stranger.create(Job.BASE, new byte[0], owned(ZooDefs.Perms.READ | ZooDefs.Perms.CREATE), CreateMode.PERSISTENT);
        // With all rights, a stranger could delete what ranks create below it.
        stranger.create(job("read"), new byte[0], ZooDefs.Ids.READ_ACL_UNSAFE, CreateMode.PERSISTENT);
        stranger.create(job("all"), new byte[0], ZooDefs.Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
        assertRefused(path, "read", " may not use /nccl4j/-read-0 (access list: world:anyone:r): the secret of");
        assertRefused(path, "all", " may not use /nccl4j/-all-0 (access list: world:anyone:cdrwa): the secret of");
        stranger.setACL(Job.BASE, owned(ZooDefs.Perms.READ), -1);
        assertRefused(
                path,
                "more",
                " may not create /nccl4j/-more-0 below /nccl4j (access list: digest:another:cdrwa, world:anyone:r):"
                        + " an administrator of the ensemble must create /nccl4j anew with the access list"
                        + " world:anyone:cdr");
    }

    @Test
    void administratorMustCreateTheNodeOfAllJobsWhereNobodyElseMay() throws Exception {
        ZooKeeper administrator = clientBelow("/closed");
        administrator.addAuthInfo("digest", bytes("administrator:password"));
        administrator.setACL("/", owned(ZooDefs.Perms.READ), -1);
        assertRefused(
                "/closed",
                "any",
                " may not create /nccl4j: an administrator of the ensemble must create it with the access list"
                        + " world:anyone:cdr");
        administrator.create(
                Job.BASE,
                new byte[0],
                owned(ZooDefs.Perms.CREATE | ZooDefs.Perms.DELETE | ZooDefs.Perms.READ),
                CreateMode.PERSISTENT);
        openBelow("/closed", "any").close();
    }

    /** All rights for the creator, and some for anyone. */
    private static List<ACL> owned(int others) {
        List<ACL> list = new ArrayList<>(ZooDefs.Ids.CREATOR_ALL_ACL);
        list.add(new ACL(others, ZooDefs.Ids.ANYONE_ID_UNSAFE));
        return list;
    }

    private static String job(String name) {
        return Job.BASE + "/" + Text.node(name + "-0");
    }

    private static void assertRefused(String path, String job, String reason) {
        String refused = assertThrows(RendezvousException.class, () -> openBelow(path, job))
                .getMessage();
        assertTrue(refused.contains(reason), refused);
    }

    private static void assertNoneIsOpen(ZooKeeperStore store, String node) throws Exception {
        assertEquals(
                "digest",
                store.session().client().getACL().forPath(node).get(0).getId().getScheme(),
                node);
        for (String child : store.session().children(node)) {
            assertNoneIsOpen(store, node + "/" + child);
        }
    }

    /** The nodes of a job whose ranks were all killed are deleted by the next job, those of a running one are not. */
    @Test
    void nextJobDeletesWhatAKilledOneHasLeft() throws Exception {
        String killed = ensemble.job();
        String running = ensemble.job();
        ZooKeeperStore ends = ensemble.open(killed, 0, 1);
        ends.set("key", bytes("value"));
        ends.barrier("same", LIMIT);
        String ranks = ends.job().ranks();
        ends.session().close();
        try (ZooKeeperStore stays = ensemble.open(running, 0, 1)) {
            stays.set("key", bytes("value"));
            try (ZooKeeperStore next = ensemble.open(ensemble.job(), 0, 1)) {
                Waiting.until("end of the job", () -> next.session().stat(ranks.replace("/ranks", "")) == null);
            }
            assertEquals("value", new String(stays.get("key", Duration.ZERO), StandardCharsets.UTF_8));
        }
    }

    /** A job of the same name starts anew, also with another number of ranks. */
    @Test
    void jobStartsAnewWhenAllItsRanksHaveEnded() throws Exception {
        String job = ensemble.job();
        for (int size : List.of(1, 2, 2, 3)) {
            ensemble.run(job, size, store -> {
                assertEquals(0, store.attempt());
                assertThrows(RendezvousTimeoutException.class, () -> store.get("key", Duration.ZERO));
                store.barrier("read", LIMIT);
                store.set("key", bytes("value"));
                store.barrier("set", LIMIT);
                assertEquals(Collections.nCopies(size, 0), store.attempts());
                store.barrier("end", LIMIT);
                // As processes that are killed.
                store.session().close();
                return null;
            });
        }
    }

    @Test
    void membersLearnOfLostOnesButNotOfThoseThatLeave() throws Exception {
        String job = ensemble.job();
        List<LostRank> told = Collections.synchronizedList(new ArrayList<>());
        List<LostRank> toldLater = Collections.synchronizedList(new ArrayList<>());
        try (ZooKeeperStore zero = ensemble.open(job, 0, 4)) {
            assertTrue(zero.membership("group", 10, told::add)
                    .orElseThrow()
                    .silent()
                    .isEmpty());
            assertThrows(IllegalArgumentException.class, () -> zero.membership("group", 10, told::add));
            ZooKeeperStore one = ensemble.open(job, 1, 4);
            one.membership("group", 11, lost -> {});
            one.close();
            ZooKeeperStore two = ensemble.open(job, 2, 4);
            two.membership("group", 12, lost -> {}).orElseThrow().close();
            two.session().close();
            ZooKeeperStore three = ensemble.open(job, 3, 4);
            three.membership("group", 13, lost -> {});
            three.session().close();
            Waiting.until("loss", () -> !told.isEmpty());
            zero.scope("inner").membership("group", 0, lost -> {});
            try (ZooKeeperStore back = ensemble.open(job, 1, 4)) {
                back.membership("group", 14, toldLater::add);
                Waiting.until("earlier loss", () -> !toldLater.isEmpty());
            }
        }
        assertEquals(told, toldLater);
        assertEquals(1, told.size());
        assertTrue(
                told.get(0)
                        .toString()
                        .matches("rank 13 \\(.+, process "
                                + ProcessHandle.current().pid() + "\\) is lost: its session at ZooKeeper has ended"),
                told::toString);
    }

    /** A session that the ensemble has ended: the other rank is told, and this one gets a clear exception. */
    @Test
    void expiredSessionIsALoss() throws Exception {
        String job = ensemble.job();
        List<LostRank> told = Collections.synchronizedList(new ArrayList<>());
        try (ZooKeeperStore stays = ensemble.open(job, 1, 2);
                ZooKeeperStore ends = ensemble.open(job, 0, 2)) {
            stays.membership("group", 1, told::add);
            ends.membership("group", 0, lost -> {});
            Future<String> waits =
                    ensemble.submit(() -> assertThrows(RendezvousException.class, () -> ends.get("never", LIMIT))
                            .getMessage());
            Future<String> other =
                    ensemble.submit(() -> assertThrows(RendezvousException.class, () -> stays.barrier("both", LIMIT))
                            .getMessage());
            ensemble.endSession(ends);
            assertTrue(Ensemble.result(waits).matches("rank 0 at ZooKeeper .* has lost its session.*"));
            assertTrue(Ensemble.result(other).endsWith("is lost"));
            Waiting.until("loss", () -> !told.isEmpty());
            assertTrue(assertThrows(RendezvousException.class, () -> ends.set("key", new byte[0]))
                    .getMessage()
                    .contains("count this rank as lost"));
            assertThrows(RendezvousException.class, () -> ends.barrier("both", LIMIT));
            Waiting.until(
                    "end of the client", () -> ends.session().client().getState() == CuratorFrameworkState.STOPPED);
        }
    }

    /** Each server is killed in turn while the ranks wait; nobody is lost, and every call succeeds. */
    @Test
    void killedServersAreNoLoss() throws Exception {
        String job = ensemble.job();
        List<LostRank> told = Collections.synchronizedList(new ArrayList<>());
        try (ZooKeeperStore zero = ensemble.open(job, 0, 2);
                ZooKeeperStore one = ensemble.open(job, 1, 2)) {
            zero.membership("group", 0, told::add);
            one.membership("group", 1, told::add);
            int round = 0;
            for (InstanceSpec server : List.copyOf(ensemble.servers.getInstances())) {
                String key = "round-" + round++;
                Future<byte[]> waits = ensemble.submit(() -> one.get(key, LIMIT));
                Future<?> arrives = ensemble.submit(() -> {
                    one.barrier(key, LIMIT);
                    return null;
                });
                ensemble.servers.killServer(server);
                zero.set(key, bytes(key));
                zero.add("sum", 1);
                assertEquals(key, new String(Ensemble.result(waits), StandardCharsets.UTF_8));
                zero.barrier(key, LIMIT);
                Ensemble.result(arrives);
                ensemble.servers.restartServer(server);
                Waiting.until("a leader", () -> ensemble.leader() != null);
            }
            assertEquals("3", new String(one.get("sum", Duration.ZERO), StandardCharsets.UTF_8));
            assertEquals(List.of(0, 0), one.attempts());
        }
        assertEquals(List.of(), told);
    }

    /** Without a majority of the servers, calls wait as long as the session lives. */
    @Test
    void callsWaitForAMajority() throws Exception {
        String job = ensemble.job();
        try (ZooKeeperStore store = ensemble.open(job, 0, 1)) {
            List<InstanceSpec> two =
                    List.copyOf(ensemble.servers.getInstances()).subList(0, 2);
            for (InstanceSpec server : two) {
                ensemble.servers.killServer(server);
            }
            Future<Long> adds;
            try {
                Waiting.until(
                        "end of the connection",
                        () -> !store.session().client().getZookeeperClient().isConnected());
                adds = ensemble.submit(() -> store.add("sum", 1));
            } finally {
                for (InstanceSpec server : two) {
                    ensemble.servers.restartServer(server);
                }
            }
            assertEquals(1, Ensemble.result(adds));
            assertEquals(2, store.add("sum", 1));
            assertEquals(0, store.attempt());
        }
    }

    /** One server does not respond any more: the rank goes on with another one, and repeats no change that was made. */
    @Test
    void rankGoesOnWithoutTheServerThatItCanNotReach() throws Exception {
        String job = ensemble.job();
        try (Links links = new Links(ensemble.servers.getInstances().stream()
                        .map(InstanceSpec::getPort)
                        .toList());
                ZooKeeperStore zero = ensemble.open(job, 0, 2);
                ZooKeeperStore one = ZooKeeperStore.builder(links.addresses())
                        .timeout(LIMIT)
                        .sessionTimeout(Duration.ofSeconds(6))
                        .open(Ensemble.rank(job, 1, 2))) {
            one.set("before", new byte[0]);
            Future<byte[]> waits = ensemble.submit(() -> one.get("after", LIMIT));
            int silenced = links.silenceUsed();
            assertEquals(1, silenced);
            String key = one.job().folder("keys") + "/" + Text.node("created");
            Session.Changes creation = operations -> List.of(operations.create().forPath(key, bytes("once")));
            assertTrue(one.session().change(key, creation));
            assertFalse(one.session().change(key, creation));
            one.add("sum", 1);
            zero.set("after", bytes("value"));
            assertEquals("value", new String(Ensemble.result(waits), StandardCharsets.UTF_8));
            Future<?> arrives = ensemble.submit(() -> {
                one.barrier("both", LIMIT);
                return null;
            });
            zero.barrier("both", LIMIT);
            Ensemble.result(arrives);
            assertEquals("1", new String(zero.get("sum", Duration.ZERO), StandardCharsets.UTF_8));
            assertEquals(List.of(0, 0), zero.attempts());
        }
    }

    @Test
    void closeEndsAGather() throws Exception {
        ZooKeeperStore store = ensemble.open(ensemble.job(), 0, 2);
        Future<?> gathers = ensemble.submit(() -> store.gather("all", new byte[0], LIMIT));
        Waiting.until(
                "gather",
                () -> store.session().children(store.job().folder("gathers")).size() == 1);
        store.close();
        Throwable ended = assertThrows(ExecutionException.class, () -> Ensemble.result(gathers))
                .getCause();
        assertEquals(RendezvousException.class, ended.getClass());
        assertTrue(ended.getMessage().endsWith(": the store was closed"), ended.getMessage());
        assertThrows(IllegalStateException.class, () -> store.barrier("key", LIMIT));
        assertThrows(IllegalStateException.class, () -> store.membership("group", 0, lost -> {}));
    }

    /** As the hook of the process does while another hook closes a communicator, and then the store or not. */
    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void endOfTheProcessWaitsForTheEndOfItsMember(boolean closes) throws Exception {
        String job = ensemble.job();
        List<LostRank> told = Collections.synchronizedList(new ArrayList<>());
        try (ZooKeeperStore stays = ensemble.open(job, 1, 2)) {
            ZooKeeperStore ends = ensemble.open(job, 0, 2);
            stays.membership("group", 1, told::add);
            ends.membership("group", 0, lost -> {});
            Thread hook = new Thread(ends.session()::endAtExit);
            hook.start();
            Waiting.until("an end that waits", () -> !hook.isAlive() || hook.getState() == Thread.State.TIMED_WAITING);
            if (closes) {
                // The session still serves.
                ends.close();
            }
            hook.join(LIMIT.toMillis());
            assertFalse(hook.isAlive());
            Waiting.until("end of the process", () -> stays.attempts().equals(List.of(-1, 0)));
            if (!closes) {
                Waiting.until("loss", () -> !told.isEmpty());
                ends.close();
            }
            String gone = assertThrows(RendezvousException.class, () -> stays.barrier("both", LIMIT))
                    .getMessage();
            assertTrue(gone.endsWith(closes ? ") has closed its store" : ") is lost"), gone);
            assertEquals(closes ? 0 : 1, told.size());
        }
    }

    /** Lines after the interval, and then each time that the wait has doubled. */
    @Test
    void waitsAreLogged() throws Exception {
        List<String> lines = Collections.synchronizedList(new ArrayList<>());
        Logger logger = Logger.getLogger("io.github.nccl4j");
        Filter before = logger.getFilter();
        logger.setFilter(line -> !lines.add(line.getMessage()));
        try (ZooKeeperStore store = ensemble.open(ensemble.job(), 0, 2)) {
            store.session().logWaitsAfter(TimeUnit.MILLISECONDS.toNanos(20));
            String waits = "rank 0 at ZooKeeper " + ensemble.addresses() + " waits for ";
            Future<byte[]> get = ensemble.submit(() -> store.get("a", LIMIT));
            Waiting.until("two lines", () -> lines.size() >= 2);
            assertEquals(waits + "'a' (0.02 s so far)", lines.get(0));
            store.set("a", new byte[0]);
            Ensemble.result(get);
            lines.clear();
            Future<?> await = ensemble.submit(() -> {
                store.await(List.of("a", "b", "c"), LIMIT);
                return null;
            });
            Waiting.until("a line", () -> !lines.isEmpty());
            assertEquals(waits + "'b' (0.02 s so far)", lines.get(0));
            store.set("b", new byte[0]);
            store.set("c", new byte[0]);
            Ensemble.result(await);
            lines.clear();
            assertThrows(RendezvousTimeoutException.class, () -> store.barrier("all", Duration.ofSeconds(1)));
            assertEquals(waits + "'all' (0.02 s so far)", lines.get(0));
            lines.clear();
            assertThrows(RendezvousTimeoutException.class, () -> store.get("never", Duration.ofMillis(1)));
            assertEquals(List.of(), lines);
        } finally {
            logger.setFilter(before);
        }
    }

    @Test
    void interruptedThreadKeepsItsStatus() throws Exception {
        try (Store store = ensemble.open(ensemble.job(), 0, 2)) {
            Future<Boolean> waits = ensemble.submit(() -> {
                Thread.currentThread().interrupt();
                assertThrows(RendezvousException.class, () -> store.barrier("start", LIMIT));
                return Thread.interrupted();
            });
            assertTrue(Ensemble.result(waits));
        }
    }

    @Test
    void closedStoresLeaveNoThread() throws Exception {
        for (int i = 0; i < 3; i++) {
            ensemble.run(ensemble.job(), 2, store -> {
                store.barrier("start", LIMIT);
                return null;
            });
        }
        Waiting.until("end of the threads", () -> clientThreads().isEmpty());
        assertFalse(Thread.getAllStackTraces().keySet().isEmpty());
    }

    private static List<String> clientThreads() {
        return Thread.getAllStackTraces().keySet().stream()
                .map(Thread::getName)
                .filter(name -> name.startsWith("nccl4j-zookeeper")
                        || name.startsWith("Curator")
                        || name.contains("-SendThread"))
                .toList();
    }
}
