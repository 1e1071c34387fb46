package io.github.nccl4j.zookeeper;

import io.github.nccl4j.launch.RendezvousException;
import java.security.GeneralSecurityException;
import java.util.Base64;
import java.util.List;
import java.util.stream.Collectors;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.api.ACLProvider;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.ZooDefs;
import org.apache.zookeeper.ZooDefs.Perms;
import org.apache.zookeeper.data.ACL;
import org.apache.zookeeper.data.Id;
import org.apache.zookeeper.server.auth.DigestAuthenticationProvider;

/**
 * Access to the nodes. Anyone may create jobs below {@link Job#BASE}, but nobody may change its access list; with a secret, only
 * holders of the secret may use the nodes of a job. The ensemble gets a key that is derived from the secret for this purpose, so
 * that a server that is not of the ensemble does not learn the secret. Immutable.
 */
final class Access implements ACLProvider {
    private static final String SCHEME = "digest";
    private static final String USER = "nccl4j";
    private static final String ALGORITHM = "HmacSHA256";
    private static final List<ACL> BASE_ACL =
            List.of(new ACL(Perms.CREATE | Perms.DELETE | Perms.READ, ZooDefs.Ids.ANYONE_ID_UNSAFE));

    private static final String ADVICE = "with the access list world:anyone:cdr";

    /** The name and the key; null without a secret. */
    private final String login;

    /** The name and the digest of the key, which the access lists of own nodes have; null without a secret. */
    private final String owner;

    /** A null secret is none. */
    Access(byte[] secret) {
        if (secret == null) {
            login = null;
            owner = null;
            return;
        }
        try {
            login = USER + ":" + Base64.getEncoder().encodeToString(key(secret));
            owner = DigestAuthenticationProvider.generateDigest(login);
        } catch (GeneralSecurityException missing) {
            throw new IllegalStateException("this Java has no " + ALGORITHM + ", or no SHA-1", missing);
        }
    }

    /** The key for the ensemble; without the secret, it opens no other store. */
    static byte[] key(byte[] secret) throws GeneralSecurityException {
        Mac mac = Mac.getInstance(ALGORITHM);
        mac.init(new SecretKeySpec(secret, ALGORITHM));
        return mac.doFinal(Text.bytes("nccl4j ZooKeeper 1, digest authentication"));
    }

    void applyTo(CuratorFrameworkFactory.Builder client) {
        client.aclProvider(this);
        if (login != null) {
            client.authorization(SCHEME, Text.bytes(login));
        }
    }

    @Override
    public List<ACL> getDefaultAcl() {
        return login == null ? ZooDefs.Ids.OPEN_ACL_UNSAFE : ZooDefs.Ids.CREATOR_ALL_ACL;
    }

    @Override
    public List<ACL> getAclForPath(String path) {
        return path.equals(Job.BASE) ? BASE_ACL : getDefaultAcl();
    }

    /** Creates the node of all jobs if it does not exist, and closes its access list if anyone may change it. */
    static void prepareBase(Session session) {
        if (session.stat(Job.BASE) == null) {
            try {
                session.create(Job.BASE, new byte[0], CreateMode.PERSISTENT);
            } catch (RendezvousException failure) {
                throw isRefusal(failure) ? refusal(session, Job.BASE, failure) : failure;
            }
        }
        List<ACL> found = session.accessList(Job.BASE);
        if (found != null
                && found.stream()
                        .anyMatch(one -> one.getId().equals(ZooDefs.Ids.ANYONE_ID_UNSAFE)
                                && (one.getPerms() & Perms.ADMIN) != 0)) {
            session.setAccessList(Job.BASE, BASE_ACL);
        }
    }

    /** True without a secret, and if a holder of the secret has created the node of a job: nobody else knows the digest. */
    boolean isOwner(Session session, String job) {
        if (owner == null) {
            return true;
        }
        List<ACL> found = session.accessList(job);
        return found != null && found.contains(new ACL(Perms.ALL, new Id(SCHEME, owner)));
    }

    static boolean isRefusal(RendezvousException failure) {
        return failure.getCause() instanceof KeeperException.NoAuthException;
    }

    /** The exception for a node, of a job or of all jobs, that this process may not create or use. */
    static RendezvousException refusal(Session session, String path, Throwable cause) {
        String reason;
        if (session.stat(path) != null) {
            reason = "may not use " + path + describe(session, path)
                    + ": the secret of the ranks that created it must be that of this process. If another user has created"
                    + " it, choose another NCCL4J_JOB";
        } else if (path.equals(Job.BASE)) {
            reason = "may not create " + path + ": an administrator of the ensemble must create it " + ADVICE;
        } else {
            reason = "may not create " + path + " below " + Job.BASE + describe(session, Job.BASE)
                    + ": an administrator of the ensemble must create " + Job.BASE + " anew " + ADVICE;
        }
        return new RendezvousException(session.name() + " " + reason, cause);
    }

    private static String describe(Session session, String path) {
        List<ACL> found = session.accessList(path);
        return found == null
                ? ""
                : " (access list: " + found.stream().map(Access::describe).collect(Collectors.joining(", ")) + ")";
    }

    /** As ZooKeeper's command line shows it, without the digest of a key. */
    private static String describe(ACL one) {
        int[] codes = {Perms.CREATE, Perms.DELETE, Perms.READ, Perms.WRITE, Perms.ADMIN};
        StringBuilder text = new StringBuilder(one.getId().getScheme())
                .append(':')
                .append(one.getId().getId().replaceFirst(":.*", ""))
                .append(':');
        for (int i = 0; i < codes.length; i++) {
            if ((one.getPerms() & codes[i]) != 0) {
                text.append("cdrwa".charAt(i));
            }
        }
        // Another user has chosen the name.
        return text.toString().replaceAll("[^ -~]", "?");
    }
}
