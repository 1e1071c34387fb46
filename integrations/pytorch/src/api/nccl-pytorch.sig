#Signature file v4.1
#Version 1.0

CLSS public final io.github.nccl4j.pytorch.DistributedDataParallel
fld public final static long DEFAULT_BUCKET_BYTES = 26214400
innr public abstract interface static NoSync
innr public final static Builder
intf java.lang.AutoCloseable
meth public int bucketCount()
meth public io.github.nccl4j.highlevel.Communicator communicator()
meth public io.github.nccl4j.pytorch.DistributedDataParallel$NoSync noSync()
meth public static io.github.nccl4j.pytorch.DistributedDataParallel$Builder builder(org.bytedeco.pytorch.Module,io.github.nccl4j.highlevel.Communicator)
meth public void broadcastBuffers()
meth public void close()
meth public void replaceCommunicator(io.github.nccl4j.highlevel.Communicator)
meth public void synchronize()
supr java.lang.Object
hfds abandoned,buckets,closed,communicator,description,device,failure,filled,next,optimizers,parameters,scopesWithoutSync,state,stateBuffers,unsettled

CLSS public final static io.github.nccl4j.pytorch.DistributedDataParallel$Builder
 outer io.github.nccl4j.pytorch.DistributedDataParallel
meth public !varargs io.github.nccl4j.pytorch.DistributedDataParallel$Builder optimizers(org.bytedeco.pytorch.Optimizer[])
meth public io.github.nccl4j.pytorch.DistributedDataParallel create()
meth public io.github.nccl4j.pytorch.DistributedDataParallel$Builder bucketBytes(long)
meth public io.github.nccl4j.pytorch.DistributedDataParallel$Builder compression(io.github.nccl4j.pytorch.GradientCompression)
supr java.lang.Object
hfds bucketBytes,communicator,compression,module,optimizers

CLSS public abstract interface static io.github.nccl4j.pytorch.DistributedDataParallel$NoSync
 outer io.github.nccl4j.pytorch.DistributedDataParallel
intf java.lang.AutoCloseable
meth public abstract void close()

CLSS public final !enum io.github.nccl4j.pytorch.GradientCompression
fld public final static io.github.nccl4j.pytorch.GradientCompression BFLOAT16
fld public final static io.github.nccl4j.pytorch.GradientCompression NONE
meth public static io.github.nccl4j.pytorch.GradientCompression valueOf(java.lang.String)
meth public static io.github.nccl4j.pytorch.GradientCompression[] values()
supr java.lang.Enum<io.github.nccl4j.pytorch.GradientCompression>

CLSS public final io.github.nccl4j.pytorch.TensorBuffer<%0 extends io.github.nccl4j.highlevel.Element>
intf java.lang.AutoCloseable
meth public io.github.nccl4j.highlevel.DeviceBuffer<{io.github.nccl4j.pytorch.TensorBuffer%0}> buffer()
meth public io.github.nccl4j.highlevel.ElementType<{io.github.nccl4j.pytorch.TensorBuffer%0}> type()
meth public java.lang.String toString()
meth public static <%0 extends io.github.nccl4j.highlevel.Element> io.github.nccl4j.pytorch.TensorBuffer<{%%0}> of(org.bytedeco.pytorch.Tensor,io.github.nccl4j.highlevel.ElementType<{%%0}>)
meth public static io.github.nccl4j.highlevel.CudaStream currentStream(io.github.nccl4j.highlevel.Device)
meth public static io.github.nccl4j.highlevel.Device deviceOf(org.bytedeco.pytorch.Tensor)
meth public static io.github.nccl4j.highlevel.ElementType<?> typeOf(org.bytedeco.pytorch.global.torch$ScalarType)
meth public static io.github.nccl4j.pytorch.TensorBuffer<?> of(org.bytedeco.pytorch.Tensor)
meth public static io.github.nccl4j.pytorch.TensorBuffer<io.github.nccl4j.highlevel.Element$Uint8> bytesOf(org.bytedeco.pytorch.Tensor)
meth public static org.bytedeco.pytorch.Device torchDevice(io.github.nccl4j.highlevel.Device)
meth public void close()
supr java.lang.Object
hfds TYPES,buffer,tensor
hcls Memory

CLSS public final io.github.nccl4j.pytorch.TensorCollectives
meth public io.github.nccl4j.highlevel.Communicator communicator()
meth public io.github.nccl4j.pytorch.TensorCollectives in(io.github.nccl4j.highlevel.CudaStream)
meth public static io.github.nccl4j.pytorch.TensorCollectives of(io.github.nccl4j.highlevel.Communicator)
meth public static long nativeHandleOf(org.bytedeco.pytorch.nccl.ProcessGroupNCCL,io.github.nccl4j.highlevel.Device)
meth public void allGather(java.util.List<? extends org.bytedeco.pytorch.Tensor>,java.util.List<? extends org.bytedeco.pytorch.Tensor>)
meth public void allGather(org.bytedeco.pytorch.Tensor,org.bytedeco.pytorch.Tensor)
meth public void allReduce(java.util.List<? extends org.bytedeco.pytorch.Tensor>,io.github.nccl4j.highlevel.ReduceOp)
meth public void allReduce(org.bytedeco.pytorch.Tensor,io.github.nccl4j.highlevel.ReduceOp)
meth public void allToAll(java.util.List<? extends org.bytedeco.pytorch.Tensor>,java.util.List<? extends org.bytedeco.pytorch.Tensor>)
meth public void allToAll(org.bytedeco.pytorch.Tensor,org.bytedeco.pytorch.Tensor)
meth public void broadcast(java.util.List<? extends org.bytedeco.pytorch.Tensor>,int)
meth public void broadcast(org.bytedeco.pytorch.Tensor,int)
meth public void gather(java.util.List<? extends org.bytedeco.pytorch.Tensor>,java.util.List<? extends org.bytedeco.pytorch.Tensor>,int)
meth public void gather(org.bytedeco.pytorch.Tensor,org.bytedeco.pytorch.Tensor,int)
meth public void recv(org.bytedeco.pytorch.Tensor,int)
meth public void reduce(java.util.List<? extends org.bytedeco.pytorch.Tensor>,io.github.nccl4j.highlevel.ReduceOp,int)
meth public void reduce(org.bytedeco.pytorch.Tensor,io.github.nccl4j.highlevel.ReduceOp,int)
meth public void reduceScatter(java.util.List<? extends org.bytedeco.pytorch.Tensor>,java.util.List<? extends org.bytedeco.pytorch.Tensor>,io.github.nccl4j.highlevel.ReduceOp)
meth public void reduceScatter(org.bytedeco.pytorch.Tensor,org.bytedeco.pytorch.Tensor,io.github.nccl4j.highlevel.ReduceOp)
meth public void scatter(java.util.List<? extends org.bytedeco.pytorch.Tensor>,java.util.List<? extends org.bytedeco.pytorch.Tensor>,int)
meth public void scatter(org.bytedeco.pytorch.Tensor,org.bytedeco.pytorch.Tensor,int)
meth public void send(org.bytedeco.pytorch.Tensor,int)
supr java.lang.Object
hfds communicator,stream
hcls Between,InPlace,Pair

CLSS abstract interface io.github.nccl4j.pytorch.package-info
 anno 0 org.jspecify.annotations.NullMarked()

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

CLSS public abstract interface java.lang.constant.Constable
meth public abstract java.util.Optional<? extends java.lang.constant.ConstantDesc> describeConstable()

CLSS public abstract interface !annotation org.jspecify.annotations.NullMarked
 anno 0 java.lang.annotation.Documented()
 anno 0 java.lang.annotation.Retention(java.lang.annotation.RetentionPolicy value=RUNTIME)
 anno 0 java.lang.annotation.Target(java.lang.annotation.ElementType[] value=[MODULE, PACKAGE, TYPE, METHOD, CONSTRUCTOR])
intf java.lang.annotation.Annotation

