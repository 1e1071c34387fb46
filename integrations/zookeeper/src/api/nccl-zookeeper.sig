#Signature file v4.1
#Version 1.0

CLSS public abstract interface io.github.nccl4j.launch.ObserverProvider
fld public final static java.lang.String SEPARATOR = "://"
meth public abstract io.github.nccl4j.launch.StoreObserver connect(java.lang.String,byte[],java.time.Duration)
meth public abstract io.github.nccl4j.launch.StoreObserver connect(java.lang.String,java.time.Duration)
meth public abstract java.lang.String scheme()

CLSS public abstract interface io.github.nccl4j.launch.Rendezvous
fld public final static int LONGEST_VALUE = 65536
fld public final static java.time.Duration DEFAULT_TIMEOUT
intf java.lang.AutoCloseable
meth public abstract int rank()
meth public abstract int size()
meth public abstract java.util.List<byte[]> gather(java.lang.String,byte[],java.time.Duration)
meth public abstract void close()
meth public byte[] broadcast(java.lang.String,int,java.util.function.Supplier<byte[]>,java.time.Duration)
meth public io.github.nccl4j.launch.RankInfo locate(io.github.nccl4j.launch.RankInfo,java.time.Duration)
meth public io.github.nccl4j.launch.Rendezvous scope(java.lang.String)
meth public java.util.Optional<io.github.nccl4j.launch.Inquiry> inquiry(java.lang.String,java.util.function.Supplier<byte[]>)
meth public java.util.Optional<io.github.nccl4j.launch.Membership> membership(java.lang.String,int,java.util.function.Consumer<io.github.nccl4j.launch.LostRank>)
meth public java.util.Optional<io.github.nccl4j.launch.StatusEntry> status(java.lang.String,java.util.function.Supplier<java.lang.String>)
meth public void abort(java.lang.String)
meth public void barrier(java.lang.String,java.time.Duration)

CLSS public abstract interface io.github.nccl4j.launch.Store
intf io.github.nccl4j.launch.Rendezvous
meth public abstract boolean delete(java.lang.String)
meth public abstract byte[] get(java.lang.String,java.time.Duration)
meth public abstract int attempt()
meth public abstract io.github.nccl4j.launch.Rendezvous among(java.lang.String,java.util.List<java.lang.Integer>,java.util.List<java.lang.Integer>)
meth public abstract java.util.List<java.lang.Integer> attempts()
meth public abstract long add(java.lang.String,long)
meth public abstract void await(java.util.Collection<java.lang.String>,java.time.Duration)
meth public abstract void set(java.lang.String,byte[])

CLSS public final io.github.nccl4j.zookeeper.ZooKeeperObserverProvider
cons public init()
intf io.github.nccl4j.launch.ObserverProvider
meth public io.github.nccl4j.launch.StoreObserver connect(java.lang.String,byte[],java.time.Duration)
meth public io.github.nccl4j.launch.StoreObserver connect(java.lang.String,java.time.Duration)
meth public java.lang.String scheme()
supr java.lang.Object
hfds SCHEME

CLSS public final io.github.nccl4j.zookeeper.ZooKeeperStore
fld public final static java.time.Duration DEFAULT_SESSION_TIMEOUT
innr public final static Builder
intf io.github.nccl4j.launch.Store
meth public boolean delete(java.lang.String)
meth public byte[] get(java.lang.String,java.time.Duration)
meth public int attempt()
meth public int rank()
meth public int size()
meth public io.github.nccl4j.launch.Rendezvous among(java.lang.String,java.util.List<java.lang.Integer>,java.util.List<java.lang.Integer>)
meth public io.github.nccl4j.launch.Rendezvous scope(java.lang.String)
meth public java.lang.String toString()
meth public java.util.List<byte[]> gather(java.lang.String,byte[],java.time.Duration)
meth public java.util.List<java.lang.Integer> attempts()
meth public java.util.Optional<io.github.nccl4j.launch.Inquiry> inquiry(java.lang.String,java.util.function.Supplier<byte[]>)
meth public java.util.Optional<io.github.nccl4j.launch.Membership> membership(java.lang.String,int,java.util.function.Consumer<io.github.nccl4j.launch.LostRank>)
meth public java.util.Optional<io.github.nccl4j.launch.StatusEntry> status(java.lang.String,java.util.function.Supplier<java.lang.String>)
meth public long add(java.lang.String,long)
meth public static io.github.nccl4j.zookeeper.ZooKeeperStore$Builder builder(java.lang.String)
meth public static io.github.nccl4j.zookeeper.ZooKeeperStore$Builder fromEnvironment()
meth public void abort(java.lang.String)
meth public void await(java.util.Collection<java.lang.String>,java.time.Duration)
meth public void close()
meth public void set(java.lang.String,byte[])
supr java.lang.Object
hfds MAX_NUMBER_BYTES,MIN_SECRET_BYTES,RETRY_MILLIS,allRanks,ensemble,job,roster,self,session,timeout

CLSS public final static io.github.nccl4j.zookeeper.ZooKeeperStore$Builder
 outer io.github.nccl4j.zookeeper.ZooKeeperStore
meth public io.github.nccl4j.zookeeper.ZooKeeperStore open(io.github.nccl4j.launch.RankInfo)
meth public io.github.nccl4j.zookeeper.ZooKeeperStore$Builder secret(byte[])
meth public io.github.nccl4j.zookeeper.ZooKeeperStore$Builder sessionTimeout(java.time.Duration)
meth public io.github.nccl4j.zookeeper.ZooKeeperStore$Builder timeout(java.time.Duration)
supr java.lang.Object
hfds ensemble,secret,sessionTimeout,timeout

CLSS abstract interface io.github.nccl4j.zookeeper.package-info
 anno 0 org.jspecify.annotations.NullMarked()

CLSS public abstract interface java.lang.AutoCloseable
meth public abstract void close() throws java.lang.Exception

CLSS public java.lang.Object
cons public init()
meth protected java.lang.Object clone() throws java.lang.CloneNotSupportedException
meth protected void finalize() throws java.lang.Throwable
 anno 0 java.lang.Deprecated(boolean forRemoval=false, java.lang.String since="9")
meth public boolean equals(java.lang.Object)
meth public final java.lang.Class<?> getClass()
meth public final void notify()
meth public final void notifyAll()
meth public final void wait() throws java.lang.InterruptedException
meth public final void wait(long) throws java.lang.InterruptedException
meth public final void wait(long,int) throws java.lang.InterruptedException
meth public int hashCode()
meth public java.lang.String toString()

CLSS public abstract interface java.lang.annotation.Annotation
meth public abstract boolean equals(java.lang.Object)
meth public abstract int hashCode()
meth public abstract java.lang.Class<? extends java.lang.annotation.Annotation> annotationType()
meth public abstract java.lang.String toString()

CLSS public abstract interface !annotation java.lang.annotation.Documented
 anno 0 java.lang.annotation.Documented()
 anno 0 java.lang.annotation.Retention(java.lang.annotation.RetentionPolicy value=RUNTIME)
 anno 0 java.lang.annotation.Target(java.lang.annotation.ElementType[] value=[ANNOTATION_TYPE])
intf java.lang.annotation.Annotation

CLSS public abstract interface !annotation java.lang.annotation.Retention
 anno 0 java.lang.annotation.Documented()
 anno 0 java.lang.annotation.Retention(java.lang.annotation.RetentionPolicy value=RUNTIME)
 anno 0 java.lang.annotation.Target(java.lang.annotation.ElementType[] value=[ANNOTATION_TYPE])
intf java.lang.annotation.Annotation
meth public abstract java.lang.annotation.RetentionPolicy value()

CLSS public abstract interface !annotation java.lang.annotation.Target
 anno 0 java.lang.annotation.Documented()
 anno 0 java.lang.annotation.Retention(java.lang.annotation.RetentionPolicy value=RUNTIME)
 anno 0 java.lang.annotation.Target(java.lang.annotation.ElementType[] value=[ANNOTATION_TYPE])
intf java.lang.annotation.Annotation
meth public abstract java.lang.annotation.ElementType[] value()

CLSS public abstract interface !annotation org.jspecify.annotations.NullMarked
 anno 0 java.lang.annotation.Documented()
 anno 0 java.lang.annotation.Retention(java.lang.annotation.RetentionPolicy value=RUNTIME)
 anno 0 java.lang.annotation.Target(java.lang.annotation.ElementType[] value=[MODULE, PACKAGE, TYPE, METHOD, CONSTRUCTOR])
intf java.lang.annotation.Annotation

