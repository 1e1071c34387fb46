#Signature file v4.1
#Version 1.0

CLSS public final io.github.nccl4j.extensions.DistributedTensor<%0 extends io.github.nccl4j.highlevel.Element>
intf java.lang.AutoCloseable
meth public io.github.nccl4j.extensions.TensorLayout layout()
meth public io.github.nccl4j.highlevel.ElementType<{io.github.nccl4j.extensions.DistributedTensor%0}> type()
meth public java.lang.String toString()
meth public java.util.Optional<io.github.nccl4j.highlevel.DeviceBuffer<{io.github.nccl4j.extensions.DistributedTensor%0}>> local()
meth public static <%0 extends io.github.nccl4j.highlevel.Element> io.github.nccl4j.extensions.DistributedTensor<{%%0}> allocate(io.github.nccl4j.highlevel.Communicator,io.github.nccl4j.extensions.TensorLayout,io.github.nccl4j.highlevel.ElementType<{%%0}>)
meth public static <%0 extends io.github.nccl4j.highlevel.Element> io.github.nccl4j.extensions.DistributedTensor<{%%0}> wrap(io.github.nccl4j.highlevel.Communicator,io.github.nccl4j.extensions.TensorLayout,io.github.nccl4j.highlevel.DeviceBuffer<{%%0}>)
meth public void close()
supr java.lang.Object
hfds isOwner,layout,local,type

CLSS public final io.github.nccl4j.extensions.ExpertParallel<%0 extends io.github.nccl4j.highlevel.Element>
innr public final static !enum Overflow
innr public final static Dispatch
meth public int localExperts()
meth public io.github.nccl4j.extensions.ExpertParallel$Dispatch<{io.github.nccl4j.extensions.ExpertParallel%0}> dispatch(io.github.nccl4j.highlevel.DeviceBuffer<{io.github.nccl4j.extensions.ExpertParallel%0}>,int[][],float[][],io.github.nccl4j.highlevel.CudaStream)
meth public io.github.nccl4j.extensions.ExpertParallel<{io.github.nccl4j.extensions.ExpertParallel%0}> withCapacity(long,io.github.nccl4j.extensions.ExpertParallel$Overflow)
meth public static <%0 extends io.github.nccl4j.highlevel.Element> io.github.nccl4j.extensions.ExpertParallel<{%%0}> create(io.github.nccl4j.highlevel.Communicator,io.github.nccl4j.highlevel.ElementType<{%%0}>,int,int)
supr java.lang.Object
hfds capacity,communicator,experts,hidden,overflow,type

CLSS public final static io.github.nccl4j.extensions.ExpertParallel$Dispatch<%0 extends io.github.nccl4j.highlevel.Element>
 outer io.github.nccl4j.extensions.ExpertParallel
intf java.lang.AutoCloseable
meth public int[] counts()
meth public java.util.Optional<io.github.nccl4j.highlevel.DeviceBuffer<{io.github.nccl4j.extensions.ExpertParallel$Dispatch%0}>> tokens()
meth public long dropped()
meth public void close()
meth public void combine(io.github.nccl4j.highlevel.DeviceBuffer<{io.github.nccl4j.extensions.ExpertParallel$Dispatch%0}>,io.github.nccl4j.highlevel.CudaStream)
supr java.lang.Object
hfds accepted,chosen,counts,dropped,parent,received,rows,sent,weights

CLSS public final static !enum io.github.nccl4j.extensions.ExpertParallel$Overflow
 outer io.github.nccl4j.extensions.ExpertParallel
fld public final static io.github.nccl4j.extensions.ExpertParallel$Overflow DROP
fld public final static io.github.nccl4j.extensions.ExpertParallel$Overflow FAIL
meth public static io.github.nccl4j.extensions.ExpertParallel$Overflow valueOf(java.lang.String)
meth public static io.github.nccl4j.extensions.ExpertParallel$Overflow[] values()
supr java.lang.Enum<io.github.nccl4j.extensions.ExpertParallel$Overflow>

CLSS public final io.github.nccl4j.extensions.Mesh
meth public !varargs int rank(int[])
meth public boolean contains(int)
meth public boolean equals(java.lang.Object)
meth public int dimension(java.lang.String)
meth public int dimensions()
meth public int firstRank()
meth public int hashCode()
meth public int length(int)
meth public int size()
meth public int[] coordinates(int)
meth public io.github.nccl4j.extensions.Mesh by(java.lang.String,int)
meth public io.github.nccl4j.extensions.Mesh startingAt(int)
meth public java.lang.String toString()
meth public java.util.List<java.lang.String> names()
meth public java.util.Optional<io.github.nccl4j.highlevel.Communicator> split(io.github.nccl4j.highlevel.Communicator,java.lang.String)
meth public static io.github.nccl4j.extensions.Mesh of(java.lang.String,int)
supr java.lang.Object
hfds firstRank,lengths,names,size

CLSS public final io.github.nccl4j.extensions.Placement
meth public boolean equals(java.lang.Object)
meth public boolean isShard()
meth public int dimension()
meth public int hashCode()
meth public java.lang.String toString()
meth public static io.github.nccl4j.extensions.Placement replicate()
meth public static io.github.nccl4j.extensions.Placement shard(int)
supr java.lang.Object
hfds NONE,REPLICATE,dimension

CLSS public final io.github.nccl4j.extensions.Reshard<%0 extends io.github.nccl4j.highlevel.Element>
intf java.lang.AutoCloseable
meth public boolean usesM2n()
meth public static <%0 extends io.github.nccl4j.highlevel.Element> io.github.nccl4j.extensions.Reshard<{%%0}> plan(io.github.nccl4j.highlevel.Communicator,io.github.nccl4j.extensions.DistributedTensor<{%%0}>,io.github.nccl4j.extensions.DistributedTensor<{%%0}>)
meth public static <%0 extends io.github.nccl4j.highlevel.Element> io.github.nccl4j.extensions.Reshard<{%%0}> planWithM2n(io.github.nccl4j.highlevel.Communicator,io.github.nccl4j.extensions.DistributedTensor<{%%0}>,io.github.nccl4j.extensions.DistributedTensor<{%%0}>)
meth public void close()
meth public void run(io.github.nccl4j.highlevel.CudaStream)
supr java.lang.Object
hfds FNV_OFFSET,FNV_PRIME,communicator,m2n,moves,owned,receives,sends
hcls Block,Move

CLSS public final io.github.nccl4j.extensions.TensorLayout
meth public !varargs static io.github.nccl4j.extensions.TensorLayout of(io.github.nccl4j.extensions.Mesh,java.util.List<io.github.nccl4j.extensions.Placement>,long[])
meth public boolean equals(java.lang.Object)
meth public int hashCode()
meth public io.github.nccl4j.extensions.Mesh mesh()
meth public java.lang.String toString()
meth public java.util.List<io.github.nccl4j.extensions.Placement> placements()
meth public long elements(int)
meth public long[] offset(int)
meth public long[] shape()
meth public long[] shape(int)
supr java.lang.Object
hfds mesh,placements,shape

CLSS public io.github.nccl4j.extensions.library.EpBinding
cons protected init()
meth protected static long addressOf(org.bytedeco.javacpp.Pointer)
 anno 0 org.jspecify.annotations.NullUnmarked()
supr io.github.nccl4j.extensions.presets.nccl_ep

CLSS public final io.github.nccl4j.extensions.library.ExtensionException
cons public init(java.lang.String,int,java.lang.String)
meth public io.github.nccl4j.highlevel.Result result()
supr io.github.nccl4j.highlevel.NcclException
hfds code,serialVersionUID

CLSS public final io.github.nccl4j.extensions.library.ExtensionLibrary
 anno 0 org.bytedeco.javacpp.annotation.Properties(java.lang.Class[] inherit=[class io.github.nccl4j.extensions.presets.nccl_m2n], java.lang.String global="", java.lang.String helper="", java.lang.String target="", java.lang.String[] names=[], org.bytedeco.javacpp.annotation.Platform[] value=[])
fld public final static io.github.nccl4j.extensions.library.ExtensionLibrary EP
fld public final static io.github.nccl4j.extensions.library.ExtensionLibrary M2N
meth public boolean isAvailable()
meth public boolean provides(java.lang.String)
meth public java.lang.String path()
meth public java.util.Optional<java.lang.Integer> versionCode()
supr java.lang.Object
hfds LONGEST_PATH,name,number,property
hcls Address

CLSS public io.github.nccl4j.extensions.library.M2nBinding
cons protected init()
meth protected static long addressOf(org.bytedeco.javacpp.Pointer)
 anno 0 org.jspecify.annotations.NullUnmarked()
supr io.github.nccl4j.extensions.presets.nccl_m2n

CLSS abstract interface io.github.nccl4j.extensions.library.package-info
 anno 0 org.jspecify.annotations.NullMarked()

CLSS abstract interface io.github.nccl4j.extensions.package-info
 anno 0 org.jspecify.annotations.NullMarked()

CLSS public io.github.nccl4j.extensions.presets.nccl_ep
 anno 0 org.bytedeco.javacpp.annotation.Properties(java.lang.Class[] inherit=[], java.lang.String global="io.github.nccl4j.extensions.global.nccl_ep", java.lang.String helper="io.github.nccl4j.extensions.library.EpBinding", java.lang.String target="io.github.nccl4j.extensions.nccl_ep", java.lang.String[] names=[], org.bytedeco.javacpp.annotation.Platform[] value=[anno 0 org.bytedeco.javacpp.annotation.Platform(java.lang.String library="jninccl4jextensions", java.lang.String[] cinclude=[], java.lang.String[] compiler=["cpp17"], java.lang.String[] define=[], java.lang.String[] exclude=[], java.lang.String[] executable=[], java.lang.String[] executablepath=[], java.lang.String[] extension=[], java.lang.String[] framework=[], java.lang.String[] frameworkpath=[], java.lang.String[] include=["nccl4j_extensions.h", "<nccl_ep.h>"], java.lang.String[] includepath=[], java.lang.String[] includeresource=[], java.lang.String[] link=[], java.lang.String[] linkpath=[], java.lang.String[] linkresource=[], java.lang.String[] not=[], java.lang.String[] pattern=[], java.lang.String[] pragma=[], java.lang.String[] preload=[], java.lang.String[] preloadpath=[], java.lang.String[] preloadresource=[], java.lang.String[] resource=[], java.lang.String[] resourcepath=[], java.lang.String[] value=["linux-x86_64", "linux-arm64"])])
cons public init()
intf org.bytedeco.javacpp.tools.InfoMapper
meth public void map(org.bytedeco.javacpp.tools.InfoMap)
supr java.lang.Object

CLSS public io.github.nccl4j.extensions.presets.nccl_m2n
 anno 0 org.bytedeco.javacpp.annotation.Properties(java.lang.Class[] inherit=[], java.lang.String global="io.github.nccl4j.extensions.global.nccl_m2n", java.lang.String helper="io.github.nccl4j.extensions.library.M2nBinding", java.lang.String target="io.github.nccl4j.extensions.nccl_m2n", java.lang.String[] names=[], org.bytedeco.javacpp.annotation.Platform[] value=[anno 0 org.bytedeco.javacpp.annotation.Platform(java.lang.String library="jninccl4jextensions", java.lang.String[] cinclude=[], java.lang.String[] compiler=["cpp17"], java.lang.String[] define=[], java.lang.String[] exclude=[], java.lang.String[] executable=[], java.lang.String[] executablepath=[], java.lang.String[] extension=[], java.lang.String[] framework=[], java.lang.String[] frameworkpath=[], java.lang.String[] include=["nccl4j_extensions.h", "<nccl_m2n.h>"], java.lang.String[] includepath=[], java.lang.String[] includeresource=[], java.lang.String[] link=[], java.lang.String[] linkpath=[], java.lang.String[] linkresource=[], java.lang.String[] not=[], java.lang.String[] pattern=[], java.lang.String[] pragma=[], java.lang.String[] preload=[], java.lang.String[] preloadpath=[], java.lang.String[] preloadresource=[], java.lang.String[] resource=[], java.lang.String[] resourcepath=[], java.lang.String[] value=["linux-x86_64", "linux-arm64"])])
cons public init()
intf org.bytedeco.javacpp.tools.InfoMapper
meth public void map(org.bytedeco.javacpp.tools.InfoMap)
supr java.lang.Object

CLSS abstract interface io.github.nccl4j.extensions.presets.package-info
 anno 0 org.jspecify.annotations.NullMarked()

CLSS public abstract io.github.nccl4j.highlevel.NcclException
cons protected init(java.lang.String)
cons protected init(java.lang.String,java.lang.Throwable)
 anno 0 org.jspecify.annotations.NullUnmarked()
meth public java.lang.String helpId()
meth public java.lang.String toString()
supr java.lang.RuntimeException
hfds serialVersionUID

CLSS public abstract interface java.io.Serializable

CLSS public abstract interface java.lang.AutoCloseable
meth public abstract void close() throws java.lang.Exception

CLSS public abstract interface java.lang.Comparable<%0 extends java.lang.Object>
meth public abstract int compareTo({java.lang.Comparable%0})

CLSS public abstract java.lang.Enum<%0 extends java.lang.Enum<{java.lang.Enum%0}>>
cons protected init(java.lang.String,int)
innr public final static EnumDesc
intf java.io.Serializable
intf java.lang.Comparable<{java.lang.Enum%0}>
intf java.lang.constant.Constable
meth protected final java.lang.Object clone() throws java.lang.CloneNotSupportedException
meth protected final void finalize()
meth public final boolean equals(java.lang.Object)
meth public final int compareTo({java.lang.Enum%0})
meth public final int hashCode()
meth public final int ordinal()
meth public final java.lang.Class<{java.lang.Enum%0}> getDeclaringClass()
meth public final java.lang.String name()
meth public final java.util.Optional<java.lang.Enum$EnumDesc<{java.lang.Enum%0}>> describeConstable()
meth public java.lang.String toString()
meth public static <%0 extends java.lang.Enum<{%%0}>> {%%0} valueOf(java.lang.Class<{%%0}>,java.lang.String)
supr java.lang.Object
hfds name,ordinal

CLSS public java.lang.Exception
cons protected init(java.lang.String,java.lang.Throwable,boolean,boolean)
cons public init()
cons public init(java.lang.String)
cons public init(java.lang.String,java.lang.Throwable)
cons public init(java.lang.Throwable)
supr java.lang.Throwable
hfds serialVersionUID

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

CLSS public java.lang.RuntimeException
cons protected init(java.lang.String,java.lang.Throwable,boolean,boolean)
cons public init()
cons public init(java.lang.String)
cons public init(java.lang.String,java.lang.Throwable)
cons public init(java.lang.Throwable)
supr java.lang.Exception
hfds serialVersionUID

CLSS public java.lang.Throwable
cons protected init(java.lang.String,java.lang.Throwable,boolean,boolean)
cons public init()
cons public init(java.lang.String)
cons public init(java.lang.String,java.lang.Throwable)
cons public init(java.lang.Throwable)
intf java.io.Serializable
meth public final java.lang.Throwable[] getSuppressed()
meth public final void addSuppressed(java.lang.Throwable)
meth public java.lang.StackTraceElement[] getStackTrace()
meth public java.lang.String getLocalizedMessage()
meth public java.lang.String getMessage()
meth public java.lang.String toString()
meth public java.lang.Throwable fillInStackTrace()
meth public java.lang.Throwable getCause()
meth public java.lang.Throwable initCause(java.lang.Throwable)
meth public void printStackTrace()
meth public void printStackTrace(java.io.PrintStream)
meth public void printStackTrace(java.io.PrintWriter)
meth public void setStackTrace(java.lang.StackTraceElement[])
supr java.lang.Object
hfds CAUSE_CAPTION,EMPTY_THROWABLE_ARRAY,NULL_CAUSE_MESSAGE,SELF_SUPPRESSION_MESSAGE,SUPPRESSED_CAPTION,SUPPRESSED_SENTINEL,UNASSIGNED_STACK,backtrace,cause,depth,detailMessage,serialVersionUID,stackTrace,suppressedExceptions
hcls PrintStreamOrWriter,SentinelHolder,WrappedPrintStream,WrappedPrintWriter

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

CLSS public abstract interface java.lang.constant.Constable
meth public abstract java.util.Optional<? extends java.lang.constant.ConstantDesc> describeConstable()

CLSS public abstract interface !annotation org.bytedeco.javacpp.annotation.Properties
 anno 0 java.lang.annotation.Documented()
 anno 0 java.lang.annotation.Retention(java.lang.annotation.RetentionPolicy value=RUNTIME)
 anno 0 java.lang.annotation.Target(java.lang.annotation.ElementType[] value=[TYPE])
intf java.lang.annotation.Annotation
meth public abstract !hasdefault java.lang.Class[] inherit()
meth public abstract !hasdefault java.lang.String global()
meth public abstract !hasdefault java.lang.String helper()
meth public abstract !hasdefault java.lang.String target()
meth public abstract !hasdefault java.lang.String[] names()
meth public abstract !hasdefault org.bytedeco.javacpp.annotation.Platform[] value()

CLSS public abstract interface org.bytedeco.javacpp.tools.InfoMapper
meth public abstract void map(org.bytedeco.javacpp.tools.InfoMap)

CLSS public abstract interface !annotation org.jspecify.annotations.NullMarked
 anno 0 java.lang.annotation.Documented()
 anno 0 java.lang.annotation.Retention(java.lang.annotation.RetentionPolicy value=RUNTIME)
 anno 0 java.lang.annotation.Target(java.lang.annotation.ElementType[] value=[MODULE, PACKAGE, TYPE, METHOD, CONSTRUCTOR])
intf java.lang.annotation.Annotation

