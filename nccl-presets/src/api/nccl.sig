#Signature file v4.1
#Version 1.0

CLSS public final io.github.nccl4j.highlevel.AddressOperations
meth public void allGather(long,long,long,io.github.nccl4j.highlevel.DataType,io.github.nccl4j.highlevel.CudaStream)
meth public void allReduce(long,long,long,io.github.nccl4j.highlevel.DataType,io.github.nccl4j.highlevel.ReduceOp,io.github.nccl4j.highlevel.CudaStream)
meth public void broadcast(long,long,long,io.github.nccl4j.highlevel.DataType,int,io.github.nccl4j.highlevel.CudaStream)
meth public void recv(long,long,io.github.nccl4j.highlevel.DataType,int,io.github.nccl4j.highlevel.CudaStream)
meth public void reduce(long,long,long,io.github.nccl4j.highlevel.DataType,io.github.nccl4j.highlevel.ReduceOp,int,io.github.nccl4j.highlevel.CudaStream)
meth public void reduceScatter(long,long,long,io.github.nccl4j.highlevel.DataType,io.github.nccl4j.highlevel.ReduceOp,io.github.nccl4j.highlevel.CudaStream)
meth public void send(long,long,io.github.nccl4j.highlevel.DataType,int,io.github.nccl4j.highlevel.CudaStream)
supr java.lang.Object
hfds checks,operations

CLSS public final io.github.nccl4j.highlevel.AlgorithmSelection
fld public final static io.github.nccl4j.highlevel.AlgorithmSelection COLLNET_CHAIN
fld public final static io.github.nccl4j.highlevel.AlgorithmSelection COLLNET_DIRECT
fld public final static io.github.nccl4j.highlevel.AlgorithmSelection NVLS
fld public final static io.github.nccl4j.highlevel.AlgorithmSelection NVLS_TREE
fld public final static io.github.nccl4j.highlevel.AlgorithmSelection PAT
fld public final static io.github.nccl4j.highlevel.AlgorithmSelection RING
fld public final static io.github.nccl4j.highlevel.AlgorithmSelection SYMMETRIC
fld public final static io.github.nccl4j.highlevel.AlgorithmSelection TREE
meth public boolean equals(java.lang.Object)
meth public int hashCode()
meth public io.github.nccl4j.highlevel.AlgorithmSelection and(io.github.nccl4j.highlevel.AlgorithmSelection)
meth public io.github.nccl4j.highlevel.AlgorithmSelection not()
meth public io.github.nccl4j.highlevel.AlgorithmSelection or(io.github.nccl4j.highlevel.AlgorithmSelection)
meth public java.lang.String toString()
meth public static io.github.nccl4j.highlevel.AlgorithmSelection of(java.lang.String)
supr java.lang.Object
hfds NAME,alternatives

CLSS public final io.github.nccl4j.highlevel.AllToAllvPlan<%0 extends io.github.nccl4j.highlevel.Element>
intf java.lang.AutoCloseable
meth public boolean isOpen()
meth public boolean usesNativeCall()
meth public java.lang.String toString()
meth public void close()
supr java.lang.Object
hfds HEADER,MACHINE,NATIVE,PROBLEM,RCCL,TYPE,VCCL,WINDOW_OFFSET,agreed,barrier,core,form,operations,problem,receives,recv,resource,rows,send,sends,size,stream,tables
hcls Exchange,Machine,NativeCall,RcclCall,VcclCall

CLSS public final !enum io.github.nccl4j.highlevel.AlltoAllvForm
fld public final static io.github.nccl4j.highlevel.AlltoAllvForm ABSENT
fld public final static io.github.nccl4j.highlevel.AlltoAllvForm ELEVEN_ARGUMENTS
fld public final static io.github.nccl4j.highlevel.AlltoAllvForm NINE_ARGUMENTS
fld public final static io.github.nccl4j.highlevel.AlltoAllvForm TEN_ARGUMENTS
fld public final static io.github.nccl4j.highlevel.AlltoAllvForm UNKNOWN
meth public static io.github.nccl4j.highlevel.AlltoAllvForm valueOf(java.lang.String)
meth public static io.github.nccl4j.highlevel.AlltoAllvForm[] values()
supr java.lang.Enum<io.github.nccl4j.highlevel.AlltoAllvForm>

CLSS public abstract interface io.github.nccl4j.highlevel.CallInterceptor
innr public abstract interface static Installed
innr public final static Call
meth public void after(io.github.nccl4j.highlevel.CallInterceptor$Call,int,long)
meth public void before(io.github.nccl4j.highlevel.CallInterceptor$Call)

CLSS public final static io.github.nccl4j.highlevel.CallInterceptor$Call
 outer io.github.nccl4j.highlevel.CallInterceptor
cons public init(java.lang.String,long,int,java.lang.String,long,int,long)
meth public final boolean equals(java.lang.Object)
meth public final int hashCode()
meth public final java.lang.String toString()
meth public int rank()
meth public int type()
meth public java.lang.String communicatorName()
meth public java.lang.String function()
meth public long bytes()
meth public long communicator()
meth public long count()
meth public long stream()
supr java.lang.Record
hfds communicator,communicatorName,count,function,rank,stream,type

CLSS public abstract interface static io.github.nccl4j.highlevel.CallInterceptor$Installed
 outer io.github.nccl4j.highlevel.CallInterceptor
intf java.lang.AutoCloseable
meth public abstract void close()

CLSS public final io.github.nccl4j.highlevel.CallMismatchException
meth public java.lang.String helpId()
meth public java.util.List<java.lang.Integer> oddRanks()
meth public java.util.List<java.lang.String> calls()
supr io.github.nccl4j.highlevel.NcclException
hfds calls,serialVersionUID

CLSS public final io.github.nccl4j.highlevel.CollectiveConfig
 anno 0 io.github.nccl4j.highlevel.Incubating()
innr public final static Builder
innr public final static VendorOption
meth public boolean equals(java.lang.Object)
meth public int hashCode()
meth public io.github.nccl4j.highlevel.CollectiveConfig$Builder toBuilder()
meth public java.lang.String toString()
meth public java.util.Map<java.lang.String,java.lang.Object> values()
meth public static io.github.nccl4j.highlevel.CollectiveConfig algorithm(java.lang.String)
meth public static io.github.nccl4j.highlevel.CollectiveConfig$Builder builder()
meth public void requireSupportedBy(io.github.nccl4j.highlevel.NcclLibrary)
supr java.lang.Object
hfds EMPTY,MOST_VENDOR_ID,event,restricted,struct,values

CLSS public final static io.github.nccl4j.highlevel.CollectiveConfig$Builder
 outer io.github.nccl4j.highlevel.CollectiveConfig
meth public io.github.nccl4j.highlevel.CollectiveConfig build()
meth public io.github.nccl4j.highlevel.CollectiveConfig$Builder algorithm(io.github.nccl4j.highlevel.AlgorithmSelection)
meth public io.github.nccl4j.highlevel.CollectiveConfig$Builder algorithm(java.lang.String)
meth public io.github.nccl4j.highlevel.CollectiveConfig$Builder cgaClusterSize(int)
meth public io.github.nccl4j.highlevel.CollectiveConfig$Builder ctaPolicy(io.github.nccl4j.highlevel.CtaPolicy)
meth public io.github.nccl4j.highlevel.CollectiveConfig$Builder launchCompletionEvent(io.github.nccl4j.highlevel.CudaEvent)
meth public io.github.nccl4j.highlevel.CollectiveConfig$Builder maxCtas(int)
meth public io.github.nccl4j.highlevel.CollectiveConfig$Builder minCtas(int)
meth public io.github.nccl4j.highlevel.CollectiveConfig$Builder nvlsCtas(int)
meth public io.github.nccl4j.highlevel.CollectiveConfig$Builder preferAlgorithm(io.github.nccl4j.highlevel.AlgorithmSelection)
meth public io.github.nccl4j.highlevel.CollectiveConfig$Builder preferAlgorithm(java.lang.String)
meth public io.github.nccl4j.highlevel.CollectiveConfig$Builder profilerTag(long)
meth public io.github.nccl4j.highlevel.CollectiveConfig$Builder vendorAddress(int,int,long)
meth public io.github.nccl4j.highlevel.CollectiveConfig$Builder vendorOption(int,int,int)
meth public io.github.nccl4j.highlevel.CollectiveConfig$Builder vendorOption(int,int,java.lang.String)
supr java.lang.Object
hfds values

CLSS public final static io.github.nccl4j.highlevel.CollectiveConfig$VendorOption
 outer io.github.nccl4j.highlevel.CollectiveConfig
cons public init(int,int,java.lang.Object)
meth public final boolean equals(java.lang.Object)
meth public final int hashCode()
meth public int optionId()
meth public int vendorId()
meth public java.lang.Object value()
meth public java.lang.String toString()
supr java.lang.Record
hfds optionId,value,vendorId

CLSS public final io.github.nccl4j.highlevel.Communicator
fld public final static java.time.Duration DEFAULT_DEADLINE
fld public final static java.time.Duration NO_DEADLINE
innr public abstract interface static Body
innr public final static !enum State
intf java.lang.AutoCloseable
meth public !varargs io.github.nccl4j.highlevel.Window registerWindow(io.github.nccl4j.highlevel.DeviceBuffer<?>,io.github.nccl4j.highlevel.WindowFlag[])
meth public !varargs void waitSignal(io.github.nccl4j.highlevel.CudaStream,io.github.nccl4j.highlevel.SignalWait[])
meth public <%0 extends io.github.nccl4j.highlevel.Element> io.github.nccl4j.highlevel.AllToAllvPlan<{%%0}> planAllToAllv(io.github.nccl4j.highlevel.DeviceBuffer<{%%0}>,long[],long[],io.github.nccl4j.highlevel.DeviceBuffer<{%%0}>,long[],long[])
meth public <%0 extends io.github.nccl4j.highlevel.Element> io.github.nccl4j.highlevel.PreMulSum<{%%0}> preMulSum(io.github.nccl4j.highlevel.DeviceBuffer<{%%0}>)
meth public <%0 extends io.github.nccl4j.highlevel.Element> io.github.nccl4j.highlevel.PreMulSum<{%%0}> preMulSum(io.github.nccl4j.highlevel.ElementType<{%%0}>,double)
meth public <%0 extends io.github.nccl4j.highlevel.Element> void allGather(io.github.nccl4j.highlevel.DeviceBuffer<{%%0}>,io.github.nccl4j.highlevel.DeviceBuffer<{%%0}>,io.github.nccl4j.highlevel.CudaStream)
meth public <%0 extends io.github.nccl4j.highlevel.Element> void allGather(io.github.nccl4j.highlevel.DeviceBuffer<{%%0}>,io.github.nccl4j.highlevel.DeviceBuffer<{%%0}>,io.github.nccl4j.highlevel.CudaStream,io.github.nccl4j.highlevel.CollectiveConfig)
meth public <%0 extends io.github.nccl4j.highlevel.Element> void allGatherv(io.github.nccl4j.highlevel.DeviceBuffer<{%%0}>,io.github.nccl4j.highlevel.DeviceBuffer<{%%0}>,long[],long[],io.github.nccl4j.highlevel.CudaStream)
meth public <%0 extends io.github.nccl4j.highlevel.Element> void allReduce(io.github.nccl4j.highlevel.DeviceBuffer<{%%0}>,io.github.nccl4j.highlevel.DeviceBuffer<{%%0}>,io.github.nccl4j.highlevel.ReduceOp,io.github.nccl4j.highlevel.CudaStream)
meth public <%0 extends io.github.nccl4j.highlevel.Element> void allReduce(io.github.nccl4j.highlevel.DeviceBuffer<{%%0}>,io.github.nccl4j.highlevel.DeviceBuffer<{%%0}>,io.github.nccl4j.highlevel.ReduceOp,io.github.nccl4j.highlevel.CudaStream,io.github.nccl4j.highlevel.CollectiveConfig)
meth public <%0 extends io.github.nccl4j.highlevel.Element> void allReduce(io.github.nccl4j.highlevel.DeviceBuffer<{%%0}>,io.github.nccl4j.highlevel.ReduceOp,io.github.nccl4j.highlevel.CudaStream)
meth public <%0 extends io.github.nccl4j.highlevel.Element> void allToAll(io.github.nccl4j.highlevel.DeviceBuffer<{%%0}>,io.github.nccl4j.highlevel.DeviceBuffer<{%%0}>,io.github.nccl4j.highlevel.CudaStream)
meth public <%0 extends io.github.nccl4j.highlevel.Element> void allToAll(io.github.nccl4j.highlevel.DeviceBuffer<{%%0}>,io.github.nccl4j.highlevel.DeviceBuffer<{%%0}>,io.github.nccl4j.highlevel.CudaStream,io.github.nccl4j.highlevel.CollectiveConfig)
meth public <%0 extends io.github.nccl4j.highlevel.Element> void allToAllv(io.github.nccl4j.highlevel.AllToAllvPlan<{%%0}>,io.github.nccl4j.highlevel.CudaStream)
meth public <%0 extends io.github.nccl4j.highlevel.Element> void allToAllv(io.github.nccl4j.highlevel.DeviceBuffer<{%%0}>,long[],long[],io.github.nccl4j.highlevel.DeviceBuffer<{%%0}>,long[],long[],io.github.nccl4j.highlevel.CudaStream)
meth public <%0 extends io.github.nccl4j.highlevel.Element> void allToAllvUnchecked(io.github.nccl4j.highlevel.DeviceBuffer<{%%0}>,long[],long[],io.github.nccl4j.highlevel.DeviceBuffer<{%%0}>,long[],long[],io.github.nccl4j.highlevel.CudaStream)
meth public <%0 extends io.github.nccl4j.highlevel.Element> void broadcast(io.github.nccl4j.highlevel.DeviceBuffer<{%%0}>,int,io.github.nccl4j.highlevel.CudaStream)
meth public <%0 extends io.github.nccl4j.highlevel.Element> void broadcast(io.github.nccl4j.highlevel.DeviceBuffer<{%%0}>,io.github.nccl4j.highlevel.DeviceBuffer<{%%0}>,int,io.github.nccl4j.highlevel.CudaStream)
meth public <%0 extends io.github.nccl4j.highlevel.Element> void broadcast(io.github.nccl4j.highlevel.DeviceBuffer<{%%0}>,io.github.nccl4j.highlevel.DeviceBuffer<{%%0}>,int,io.github.nccl4j.highlevel.CudaStream,io.github.nccl4j.highlevel.CollectiveConfig)
meth public <%0 extends io.github.nccl4j.highlevel.Element> void gather(io.github.nccl4j.highlevel.DeviceBuffer<{%%0}>,int,io.github.nccl4j.highlevel.CudaStream)
meth public <%0 extends io.github.nccl4j.highlevel.Element> void gather(io.github.nccl4j.highlevel.DeviceBuffer<{%%0}>,io.github.nccl4j.highlevel.DeviceBuffer<{%%0}>,int,io.github.nccl4j.highlevel.CudaStream)
meth public <%0 extends io.github.nccl4j.highlevel.Element> void gather(io.github.nccl4j.highlevel.DeviceBuffer<{%%0}>,io.github.nccl4j.highlevel.DeviceBuffer<{%%0}>,int,io.github.nccl4j.highlevel.CudaStream,io.github.nccl4j.highlevel.CollectiveConfig)
meth public <%0 extends io.github.nccl4j.highlevel.Element> void gatherv(io.github.nccl4j.highlevel.DeviceBuffer<{%%0}>,int,io.github.nccl4j.highlevel.CudaStream)
meth public <%0 extends io.github.nccl4j.highlevel.Element> void gatherv(io.github.nccl4j.highlevel.DeviceBuffer<{%%0}>,io.github.nccl4j.highlevel.DeviceBuffer<{%%0}>,long[],long[],int,io.github.nccl4j.highlevel.CudaStream)
meth public <%0 extends io.github.nccl4j.highlevel.Element> void putSignal(io.github.nccl4j.highlevel.DeviceBuffer<{%%0}>,io.github.nccl4j.highlevel.Window,long,int,io.github.nccl4j.highlevel.CudaStream)
meth public <%0 extends io.github.nccl4j.highlevel.Element> void recv(io.github.nccl4j.highlevel.DeviceBuffer<{%%0}>,int,io.github.nccl4j.highlevel.CudaStream)
meth public <%0 extends io.github.nccl4j.highlevel.Element> void reduce(io.github.nccl4j.highlevel.DeviceBuffer<{%%0}>,io.github.nccl4j.highlevel.DeviceBuffer<{%%0}>,io.github.nccl4j.highlevel.ReduceOp,int,io.github.nccl4j.highlevel.CudaStream)
meth public <%0 extends io.github.nccl4j.highlevel.Element> void reduce(io.github.nccl4j.highlevel.DeviceBuffer<{%%0}>,io.github.nccl4j.highlevel.DeviceBuffer<{%%0}>,io.github.nccl4j.highlevel.ReduceOp,int,io.github.nccl4j.highlevel.CudaStream,io.github.nccl4j.highlevel.CollectiveConfig)
meth public <%0 extends io.github.nccl4j.highlevel.Element> void reduce(io.github.nccl4j.highlevel.DeviceBuffer<{%%0}>,io.github.nccl4j.highlevel.ReduceOp,int,io.github.nccl4j.highlevel.CudaStream)
meth public <%0 extends io.github.nccl4j.highlevel.Element> void reduceScatter(io.github.nccl4j.highlevel.DeviceBuffer<{%%0}>,io.github.nccl4j.highlevel.DeviceBuffer<{%%0}>,io.github.nccl4j.highlevel.ReduceOp,io.github.nccl4j.highlevel.CudaStream)
meth public <%0 extends io.github.nccl4j.highlevel.Element> void reduceScatter(io.github.nccl4j.highlevel.DeviceBuffer<{%%0}>,io.github.nccl4j.highlevel.DeviceBuffer<{%%0}>,io.github.nccl4j.highlevel.ReduceOp,io.github.nccl4j.highlevel.CudaStream,io.github.nccl4j.highlevel.CollectiveConfig)
meth public <%0 extends io.github.nccl4j.highlevel.Element> void reduceScatterv(io.github.nccl4j.highlevel.DeviceBuffer<{%%0}>,io.github.nccl4j.highlevel.DeviceBuffer<{%%0}>,long[],io.github.nccl4j.highlevel.ReduceOp,io.github.nccl4j.highlevel.CudaStream)
meth public <%0 extends io.github.nccl4j.highlevel.Element> void scatter(io.github.nccl4j.highlevel.DeviceBuffer<{%%0}>,int,io.github.nccl4j.highlevel.CudaStream)
meth public <%0 extends io.github.nccl4j.highlevel.Element> void scatter(io.github.nccl4j.highlevel.DeviceBuffer<{%%0}>,io.github.nccl4j.highlevel.DeviceBuffer<{%%0}>,int,io.github.nccl4j.highlevel.CudaStream)
meth public <%0 extends io.github.nccl4j.highlevel.Element> void scatter(io.github.nccl4j.highlevel.DeviceBuffer<{%%0}>,io.github.nccl4j.highlevel.DeviceBuffer<{%%0}>,int,io.github.nccl4j.highlevel.CudaStream,io.github.nccl4j.highlevel.CollectiveConfig)
meth public <%0 extends io.github.nccl4j.highlevel.Element> void scatterv(io.github.nccl4j.highlevel.DeviceBuffer<{%%0}>,int,io.github.nccl4j.highlevel.CudaStream)
meth public <%0 extends io.github.nccl4j.highlevel.Element> void scatterv(io.github.nccl4j.highlevel.DeviceBuffer<{%%0}>,long[],long[],io.github.nccl4j.highlevel.DeviceBuffer<{%%0}>,int,io.github.nccl4j.highlevel.CudaStream)
meth public <%0 extends io.github.nccl4j.highlevel.Element> void send(io.github.nccl4j.highlevel.DeviceBuffer<{%%0}>,int,io.github.nccl4j.highlevel.CudaStream)
meth public <%0 extends io.github.nccl4j.highlevel.Element> void sendRecv(io.github.nccl4j.highlevel.DeviceBuffer<{%%0}>,int,io.github.nccl4j.highlevel.DeviceBuffer<{%%0}>,int,io.github.nccl4j.highlevel.CudaStream)
meth public <%0 extends java.lang.Exception> void run(io.github.nccl4j.highlevel.Communicator$Body<{%%0}>) throws {%%0}
meth public boolean isBlocking()
meth public int rank()
meth public int size()
meth public io.github.nccl4j.highlevel.AddressOperations onAddresses()
meth public io.github.nccl4j.highlevel.Communicator grow(int)
meth public io.github.nccl4j.highlevel.Communicator own(io.github.nccl4j.highlevel.Communicator)
meth public io.github.nccl4j.highlevel.Communicator shrink(java.util.Collection<java.lang.Integer>,io.github.nccl4j.highlevel.ShrinkFlag)
meth public io.github.nccl4j.highlevel.Communicator split(int,int)
meth public io.github.nccl4j.highlevel.Communicator split(int,int,io.github.nccl4j.highlevel.CommunicatorConfig)
meth public io.github.nccl4j.highlevel.Communicator$State state()
meth public io.github.nccl4j.highlevel.CommunicatorProperties properties()
meth public io.github.nccl4j.highlevel.ControlData control()
meth public io.github.nccl4j.highlevel.CudaStream stream()
meth public io.github.nccl4j.highlevel.Device device()
meth public io.github.nccl4j.highlevel.FlightRecorder flightRecorder()
meth public io.github.nccl4j.highlevel.Plan plan(java.lang.Runnable)
meth public io.github.nccl4j.highlevel.Registration register(io.github.nccl4j.highlevel.DeviceBuffer<?>)
meth public io.github.nccl4j.highlevel.Result asyncError()
meth public io.github.nccl4j.highlevel.UniqueId growId()
meth public io.github.nccl4j.highlevel.Work submit(java.util.function.Consumer<io.github.nccl4j.highlevel.CudaStream>)
meth public io.github.nccl4j.highlevel.Work work(io.github.nccl4j.highlevel.CudaStream)
meth public java.lang.String lastError()
meth public java.lang.String name()
meth public java.lang.String toString()
meth public java.time.Duration deadline()
meth public java.util.Optional<io.github.nccl4j.highlevel.NcclException> failure()
meth public long memory(io.github.nccl4j.highlevel.MemoryStatistic)
meth public long nativeHandle()
meth public static io.github.nccl4j.highlevel.Communicator adopt(long,io.github.nccl4j.highlevel.Device)
meth public static io.github.nccl4j.highlevel.Communicator create(io.github.nccl4j.highlevel.UniqueId,int,int)
meth public static io.github.nccl4j.highlevel.Communicator fromEnvironment()
meth public static io.github.nccl4j.highlevel.Communicator wrap(long,io.github.nccl4j.highlevel.Device)
meth public static io.github.nccl4j.highlevel.CommunicatorBuilder builder()
meth public static java.util.List<io.github.nccl4j.highlevel.Communicator> createAll(java.util.List<io.github.nccl4j.highlevel.Device>)
meth public static void abortAll(java.util.Collection<io.github.nccl4j.highlevel.Communicator>)
meth public void abort()
meth public void close()
meth public void finish()
meth public void letDefaultStreamWait()
meth public void resume()
meth public void revoke(io.github.nccl4j.highlevel.RevokeFlag)
meth public void signal(int,io.github.nccl4j.highlevel.CudaStream)
meth public void splitNone()
meth public void suspend(io.github.nccl4j.highlevel.SuspendFlag)
meth public void waitForDefaultStream()
meth public void waitSignal(int,io.github.nccl4j.highlevel.CudaStream)
supr java.lang.Object
hfds allToAllvOperations,checks,composed,control,core,creation,derived,device,hasAllToAll,hasGather,hasScatter,onAddresses,oneSidedOperations,operations,ownStream,policy,recorder,streams,watch,windows
hcls CoreListener

CLSS public abstract interface static io.github.nccl4j.highlevel.Communicator$Body<%0 extends java.lang.Exception>
 outer io.github.nccl4j.highlevel.Communicator
 anno 0 java.lang.FunctionalInterface()
meth public abstract void run(io.github.nccl4j.highlevel.Communicator) throws {io.github.nccl4j.highlevel.Communicator$Body%0}

CLSS public final static !enum io.github.nccl4j.highlevel.Communicator$State
 outer io.github.nccl4j.highlevel.Communicator
fld public final static io.github.nccl4j.highlevel.Communicator$State ABORTED
fld public final static io.github.nccl4j.highlevel.Communicator$State CLOSED
fld public final static io.github.nccl4j.highlevel.Communicator$State FAILED
fld public final static io.github.nccl4j.highlevel.Communicator$State FINISHED
fld public final static io.github.nccl4j.highlevel.Communicator$State OPEN
fld public final static io.github.nccl4j.highlevel.Communicator$State PENDING
fld public final static io.github.nccl4j.highlevel.Communicator$State REVOKED
fld public final static io.github.nccl4j.highlevel.Communicator$State SUSPENDED
meth public static io.github.nccl4j.highlevel.Communicator$State valueOf(java.lang.String)
meth public static io.github.nccl4j.highlevel.Communicator$State[] values()
supr java.lang.Enum<io.github.nccl4j.highlevel.Communicator$State>

CLSS public final io.github.nccl4j.highlevel.CommunicatorBuilder
meth public io.github.nccl4j.highlevel.Communicator create(io.github.nccl4j.highlevel.UniqueId,int,int)
meth public io.github.nccl4j.highlevel.Communicator create(io.github.nccl4j.launch.Rendezvous)
meth public io.github.nccl4j.highlevel.Communicator create(java.util.List<io.github.nccl4j.highlevel.UniqueId>,int,int)
meth public io.github.nccl4j.highlevel.Communicator fromEnvironment()
meth public io.github.nccl4j.highlevel.Communicator join(io.github.nccl4j.highlevel.UniqueId,int,int)
meth public io.github.nccl4j.highlevel.CommunicatorBuilder check(io.github.nccl4j.launch.Rendezvous)
meth public io.github.nccl4j.highlevel.CommunicatorBuilder config(io.github.nccl4j.highlevel.CommunicatorConfig)
meth public io.github.nccl4j.highlevel.CommunicatorBuilder deadline(java.time.Duration)
meth public io.github.nccl4j.highlevel.CommunicatorBuilder device(io.github.nccl4j.highlevel.Device)
meth public io.github.nccl4j.highlevel.CommunicatorBuilder flightRecorder(int)
meth public io.github.nccl4j.highlevel.CommunicatorBuilder onFailure(io.github.nccl4j.highlevel.FailurePolicy)
meth public io.github.nccl4j.highlevel.CommunicatorBuilder watchdog(boolean)
meth public java.util.List<io.github.nccl4j.highlevel.Communicator> createAll(io.github.nccl4j.highlevel.UniqueId,int,int,java.util.List<io.github.nccl4j.highlevel.Device>)
meth public java.util.List<io.github.nccl4j.highlevel.Communicator> createAll(java.util.List<io.github.nccl4j.highlevel.Device>)
supr java.lang.Object
hfds config,device,policy,settings

CLSS public final io.github.nccl4j.highlevel.CommunicatorConfig
innr public final static Builder
meth public boolean equals(java.lang.Object)
meth public int hashCode()
meth public java.lang.String toString()
meth public java.util.Map<java.lang.String,java.lang.Object> values()
meth public static io.github.nccl4j.highlevel.CommunicatorConfig$Builder builder()
meth public void requireSupportedBy(io.github.nccl4j.highlevel.NcclLibrary)
supr java.lang.Object
hfds ignoresUnsupported,values

CLSS public final static io.github.nccl4j.highlevel.CommunicatorConfig$Builder
 outer io.github.nccl4j.highlevel.CommunicatorConfig
meth public !varargs io.github.nccl4j.highlevel.CommunicatorConfig$Builder nvlsHostMode(io.github.nccl4j.highlevel.NvlsHostMode,io.github.nccl4j.highlevel.NvlsHostMode[])
meth public io.github.nccl4j.highlevel.CommunicatorConfig build()
meth public io.github.nccl4j.highlevel.CommunicatorConfig$Builder blocking(boolean)
meth public io.github.nccl4j.highlevel.CommunicatorConfig$Builder cgaClusterSize(int)
meth public io.github.nccl4j.highlevel.CommunicatorConfig$Builder collnetEnable(boolean)
meth public io.github.nccl4j.highlevel.CommunicatorConfig$Builder commName(java.lang.String)
meth public io.github.nccl4j.highlevel.CommunicatorConfig$Builder ctaPolicy(io.github.nccl4j.highlevel.CtaPolicy)
meth public io.github.nccl4j.highlevel.CommunicatorConfig$Builder graphStreamOrdering(boolean)
meth public io.github.nccl4j.highlevel.CommunicatorConfig$Builder graphUsageMode(int)
meth public io.github.nccl4j.highlevel.CommunicatorConfig$Builder hostCftMode(io.github.nccl4j.highlevel.HostCftMode)
 anno 0 io.github.nccl4j.highlevel.Incubating()
meth public io.github.nccl4j.highlevel.CommunicatorConfig$Builder ignoreUnsupported()
meth public io.github.nccl4j.highlevel.CommunicatorConfig$Builder launchOrderImplicit(boolean)
meth public io.github.nccl4j.highlevel.CommunicatorConfig$Builder maxCtas(int)
meth public io.github.nccl4j.highlevel.CommunicatorConfig$Builder maxP2pPeers(int)
meth public io.github.nccl4j.highlevel.CommunicatorConfig$Builder minCtas(int)
meth public io.github.nccl4j.highlevel.CommunicatorConfig$Builder nChannelsPerNetPeer(int)
meth public io.github.nccl4j.highlevel.CommunicatorConfig$Builder netName(java.lang.String)
meth public io.github.nccl4j.highlevel.CommunicatorConfig$Builder numRmaCtx(int)
meth public io.github.nccl4j.highlevel.CommunicatorConfig$Builder numRmaSig(int)
meth public io.github.nccl4j.highlevel.CommunicatorConfig$Builder nvlinkCentricSched(boolean)
meth public io.github.nccl4j.highlevel.CommunicatorConfig$Builder nvlsCtas(int)
meth public io.github.nccl4j.highlevel.CommunicatorConfig$Builder rmaEagerInit(boolean)
meth public io.github.nccl4j.highlevel.CommunicatorConfig$Builder shrinkShare(boolean)
meth public io.github.nccl4j.highlevel.CommunicatorConfig$Builder splitShare(boolean)
meth public io.github.nccl4j.highlevel.CommunicatorConfig$Builder trafficClass(int)
supr java.lang.Object
hfds ignoresUnsupported,values

CLSS public final io.github.nccl4j.highlevel.CommunicatorProperties
 anno 0 io.github.nccl4j.highlevel.Incubating()
meth public boolean supportsDeviceApi()
meth public boolean supportsMultimem()
meth public int cudaDevice()
meth public int nvmlDevice()
meth public int rank()
meth public int size()
meth public io.github.nccl4j.highlevel.GinType ginType()
meth public java.lang.String toString()
meth public java.util.Optional<io.github.nccl4j.highlevel.GinConnection> ginConnection()
meth public java.util.Optional<io.github.nccl4j.highlevel.GinType> railedGinType()
meth public java.util.Optional<java.lang.Boolean> supportsCft()
meth public java.util.Optional<java.lang.Boolean> supportsCftCounted()
meth public java.util.Optional<java.lang.Boolean> supportsCftMulticast()
meth public java.util.Optional<java.lang.Boolean> supportsHostRma()
meth public java.util.Optional<java.util.Set<io.github.nccl4j.highlevel.GinType>> ginTypes()
meth public java.util.OptionalInt ginMinStride()
meth public java.util.OptionalInt lsaTeams()
meth public java.util.OptionalLong hash()
meth public java.util.OptionalLong runtimeDeviceCommunicatorBytes()
supr java.lang.Object
hfds FOURTH,GIN_TYPES,OFFSET_OF_EARLY_TYPE,SECOND,THIRD,cft,cftCounted,cftMulticast,cudaDevice,deviceApi,ginConnection,ginMinStride,ginType,ginTypes,hash,hostRma,lsaTeams,multimem,nvmlDevice,railedGinType,rank,runtimeDeviceCommunicatorBytes,size

CLSS public final io.github.nccl4j.highlevel.ControlData
fld public final static io.github.nccl4j.highlevel.ControlData$Codec<java.lang.String> TEXT
innr public abstract interface static Codec
meth public <%0 extends java.lang.Object> java.util.List<{%%0}> exchange({%%0},io.github.nccl4j.highlevel.ControlData$Codec<{%%0}>)
meth public <%0 extends java.lang.Object> {%%0} broadcast({%%0},int,io.github.nccl4j.highlevel.ControlData$Codec<{%%0}>)
meth public byte[] broadcast(byte[],int)
meth public java.util.List<byte[]> exchange(byte[])
meth public void barrier(java.time.Duration)
supr java.lang.Object
hfds checks,composed,core,data,lengths,operations,streams

CLSS public abstract interface static io.github.nccl4j.highlevel.ControlData$Codec<%0 extends java.lang.Object>
 outer io.github.nccl4j.highlevel.ControlData
meth public abstract byte[] encode({io.github.nccl4j.highlevel.ControlData$Codec%0})
meth public abstract {io.github.nccl4j.highlevel.ControlData$Codec%0} decode(byte[])

CLSS public final !enum io.github.nccl4j.highlevel.CtaPolicy
fld public final static io.github.nccl4j.highlevel.CtaPolicy DEFAULT
fld public final static io.github.nccl4j.highlevel.CtaPolicy EFFICIENCY
fld public final static io.github.nccl4j.highlevel.CtaPolicy ZERO
meth public int code()
meth public io.github.nccl4j.highlevel.Version since()
meth public static io.github.nccl4j.highlevel.CtaPolicy valueOf(java.lang.String)
meth public static io.github.nccl4j.highlevel.CtaPolicy[] values()
supr java.lang.Enum<io.github.nccl4j.highlevel.CtaPolicy>
hfds code,since

CLSS public final io.github.nccl4j.highlevel.CudaEvent
intf java.lang.AutoCloseable
meth public boolean isDone()
meth public boolean isOpen()
meth public io.github.nccl4j.highlevel.Device device()
meth public java.lang.String toString()
meth public java.time.Duration elapsedSince(io.github.nccl4j.highlevel.CudaEvent)
meth public long nativeHandle()
meth public static io.github.nccl4j.highlevel.CudaEvent create(io.github.nccl4j.highlevel.Device)
meth public static io.github.nccl4j.highlevel.CudaEvent timing(io.github.nccl4j.highlevel.Device)
meth public void close()
meth public void record(io.github.nccl4j.highlevel.CudaStream)
meth public void synchronize()
meth public void synchronize(java.time.Duration)
supr java.lang.Object
hfds device,nativeEvent

CLSS public final io.github.nccl4j.highlevel.CudaException
cons public init(java.lang.String,int,java.lang.String,java.lang.String)
meth public int code()
meth public java.lang.String call()
meth public java.lang.String helpId()
supr io.github.nccl4j.highlevel.NcclException
hfds call,code,serialVersionUID

CLSS public final io.github.nccl4j.highlevel.CudaGraph
innr public abstract interface static Body
intf java.lang.AutoCloseable
meth public boolean isOpen()
meth public io.github.nccl4j.highlevel.Device device()
meth public java.lang.String toString()
meth public long nativeHandle()
meth public static <%0 extends java.lang.Exception> io.github.nccl4j.highlevel.CudaGraph capture(io.github.nccl4j.highlevel.CudaStream,io.github.nccl4j.highlevel.CudaGraph$Body<{%%0}>) throws {%%0}
meth public void close()
meth public void launch(io.github.nccl4j.highlevel.CudaStream)
supr java.lang.Object
hfds device,nativeGraph

CLSS public abstract interface static io.github.nccl4j.highlevel.CudaGraph$Body<%0 extends java.lang.Exception>
 outer io.github.nccl4j.highlevel.CudaGraph
 anno 0 java.lang.FunctionalInterface()
meth public abstract void run() throws {io.github.nccl4j.highlevel.CudaGraph$Body%0}

CLSS public final io.github.nccl4j.highlevel.CudaLibraryException
cons public init(java.lang.String,java.lang.Throwable)
 anno 0 org.jspecify.annotations.NullUnmarked()
meth public java.lang.String helpId()
supr io.github.nccl4j.highlevel.NcclException
hfds serialVersionUID

CLSS public final io.github.nccl4j.highlevel.CudaStream
intf java.lang.AutoCloseable
meth public boolean isCapturing()
meth public boolean isDone()
meth public boolean isOpen()
meth public io.github.nccl4j.highlevel.Device device()
meth public java.lang.String toString()
meth public long nativeHandle()
meth public static io.github.nccl4j.highlevel.CudaStream blocking(io.github.nccl4j.highlevel.Device)
meth public static io.github.nccl4j.highlevel.CudaStream defaultOf(io.github.nccl4j.highlevel.Device)
meth public static io.github.nccl4j.highlevel.CudaStream nonBlocking(io.github.nccl4j.highlevel.Device)
meth public static io.github.nccl4j.highlevel.CudaStream wrap(io.github.nccl4j.highlevel.Device,long)
meth public void close()
meth public void synchronize()
meth public void synchronize(java.time.Duration)
meth public void waitFor(io.github.nccl4j.highlevel.CudaEvent)
supr java.lang.Object
hfds device,nativeStream

CLSS public final !enum io.github.nccl4j.highlevel.DataType
fld public final static io.github.nccl4j.highlevel.DataType BFLOAT16
fld public final static io.github.nccl4j.highlevel.DataType FLOAT16
fld public final static io.github.nccl4j.highlevel.DataType FLOAT32
fld public final static io.github.nccl4j.highlevel.DataType FLOAT64
fld public final static io.github.nccl4j.highlevel.DataType FLOAT8_E4M3
fld public final static io.github.nccl4j.highlevel.DataType FLOAT8_E5M2
fld public final static io.github.nccl4j.highlevel.DataType INT32
fld public final static io.github.nccl4j.highlevel.DataType INT64
fld public final static io.github.nccl4j.highlevel.DataType INT8
fld public final static io.github.nccl4j.highlevel.DataType UINT32
fld public final static io.github.nccl4j.highlevel.DataType UINT64
fld public final static io.github.nccl4j.highlevel.DataType UINT8
meth public int code()
meth public int size()
meth public io.github.nccl4j.highlevel.Version since()
meth public java.lang.Class<?> carrier()
meth public static io.github.nccl4j.highlevel.DataType of(int)
meth public static io.github.nccl4j.highlevel.DataType valueOf(java.lang.String)
meth public static io.github.nccl4j.highlevel.DataType[] values()
supr java.lang.Enum<io.github.nccl4j.highlevel.DataType>
hfds BY_CODE,carrier,code,since,size

CLSS public final io.github.nccl4j.highlevel.Device
meth public <%0 extends io.github.nccl4j.highlevel.Element> io.github.nccl4j.highlevel.DeviceBuffer<{%%0}> allocate(io.github.nccl4j.highlevel.ElementType<{%%0}>,long)
meth public <%0 extends io.github.nccl4j.highlevel.Element> io.github.nccl4j.highlevel.DeviceBuffer<{%%0}> allocateForWindow(io.github.nccl4j.highlevel.ElementType<{%%0}>,long)
meth public <%0 extends io.github.nccl4j.highlevel.Element> io.github.nccl4j.highlevel.DeviceBuffer<{%%0}> allocatePinned(io.github.nccl4j.highlevel.ElementType<{%%0}>,long)
meth public boolean equals(java.lang.Object)
meth public boolean isCuda()
meth public boolean isHost()
meth public int hashCode()
meth public int index()
meth public io.github.nccl4j.highlevel.DeviceBuffer<io.github.nccl4j.highlevel.Element$Float32> copyOf(float[])
meth public io.github.nccl4j.highlevel.DeviceBuffer<io.github.nccl4j.highlevel.Element$Float64> copyOf(double[])
meth public io.github.nccl4j.highlevel.DeviceBuffer<io.github.nccl4j.highlevel.Element$Int32> copyOf(int[])
meth public io.github.nccl4j.highlevel.DeviceBuffer<io.github.nccl4j.highlevel.Element$Int64> copyOf(long[])
meth public io.github.nccl4j.highlevel.DeviceBuffer<io.github.nccl4j.highlevel.Element$Int8> copyOf(byte[])
meth public java.lang.String toString()
meth public static int cudaCount()
meth public static io.github.nccl4j.highlevel.Device cuda(int)
meth public static io.github.nccl4j.highlevel.Device current()
meth public static io.github.nccl4j.highlevel.Device host()
meth public static io.github.nccl4j.highlevel.Device ofLocalRank(int)
supr java.lang.Object
hfds CUDA,HOST,nativeDevice

CLSS public final io.github.nccl4j.highlevel.DeviceBuffer<%0 extends io.github.nccl4j.highlevel.Element>
intf java.lang.AutoCloseable
meth public <%0 extends java.lang.Object> {%%0} asSegment(java.lang.Class<{%%0}>)
meth public boolean isOpen()
meth public boolean isOwner()
meth public byte[] toByteArray()
meth public double[] toDoubleArray()
meth public float[] toFloatArray()
meth public int[] toIntArray()
meth public io.github.nccl4j.highlevel.Device device()
meth public io.github.nccl4j.highlevel.DeviceBuffer<{io.github.nccl4j.highlevel.DeviceBuffer%0}> slice(long,long)
meth public io.github.nccl4j.highlevel.ElementType<{io.github.nccl4j.highlevel.DeviceBuffer%0}> type()
meth public java.lang.String toString()
meth public long address()
meth public long length()
meth public long sizeInBytes()
meth public long[] toLongArray()
meth public static <%0 extends io.github.nccl4j.highlevel.Element> io.github.nccl4j.highlevel.DeviceBuffer<{%%0}> wrap(io.github.nccl4j.highlevel.Device,io.github.nccl4j.highlevel.ElementType<{%%0}>,long,long)
meth public static <%0 extends io.github.nccl4j.highlevel.Element> io.github.nccl4j.highlevel.DeviceBuffer<{%%0}> wrap(io.github.nccl4j.highlevel.Device,io.github.nccl4j.highlevel.ElementType<{%%0}>,org.bytedeco.javacpp.Pointer,long)
meth public static <%0 extends io.github.nccl4j.highlevel.Element> io.github.nccl4j.highlevel.DeviceBuffer<{%%0}> wrap(io.github.nccl4j.highlevel.ElementType<{%%0}>,java.nio.ByteBuffer)
meth public static <%0 extends io.github.nccl4j.highlevel.Element, %1 extends java.lang.Object> io.github.nccl4j.highlevel.DeviceBuffer<{%%0}> wrap(io.github.nccl4j.highlevel.ElementType<{%%0}>,java.lang.Class<{%%1}>,{%%1})
meth public void close()
meth public void copyFrom(byte[])
meth public void copyFrom(double[])
meth public void copyFrom(float[])
meth public void copyFrom(int[])
meth public void copyFrom(io.github.nccl4j.highlevel.DeviceBuffer<{io.github.nccl4j.highlevel.DeviceBuffer%0}>)
meth public void copyFrom(java.nio.Buffer)
meth public void copyFrom(java.nio.Buffer,long)
meth public void copyFrom(long[])
meth public void copyFrom(short[])
meth public void copyFromAsync(io.github.nccl4j.highlevel.DeviceBuffer<{io.github.nccl4j.highlevel.DeviceBuffer%0}>,io.github.nccl4j.highlevel.CudaStream)
meth public void copyFromAsync(java.nio.Buffer,io.github.nccl4j.highlevel.CudaStream)
meth public void copyTo(byte[])
meth public void copyTo(double[])
meth public void copyTo(float[])
meth public void copyTo(int[])
meth public void copyTo(java.nio.Buffer)
meth public void copyTo(java.nio.Buffer,long)
meth public void copyTo(long[])
meth public void copyTo(short[])
meth public void copyToAsync(java.nio.Buffer,io.github.nccl4j.highlevel.CudaStream)
meth public void fill(double)
meth public void fill(long)
supr java.lang.Object
hfds address,bytes,closed,device,free,keptAlive,kind,length,lifetime,parent,pinnedBy,root,segments,type,typeCode,windowMemory

CLSS public final !enum io.github.nccl4j.highlevel.Dlpack
fld public final static io.github.nccl4j.highlevel.Dlpack UNVERSIONED
fld public final static io.github.nccl4j.highlevel.Dlpack VERSIONED
meth public <%0 extends io.github.nccl4j.highlevel.Element> io.github.nccl4j.highlevel.DeviceBuffer<{%%0}> take(long,io.github.nccl4j.highlevel.ElementType<{%%0}>)
meth public long export(io.github.nccl4j.highlevel.DeviceBuffer<?>)
meth public long[] shape(long)
meth public static io.github.nccl4j.highlevel.Dlpack valueOf(java.lang.String)
meth public static io.github.nccl4j.highlevel.Dlpack[] values()
meth public void delete(long)
supr java.lang.Enum<io.github.nccl4j.highlevel.Dlpack>
hfds CODES,EXPORTS,READ_ONLY,SUPPORTED_MAJOR,anyExport,flagsOffset,tensorOffset
hcls Export

CLSS public abstract interface io.github.nccl4j.highlevel.Element
innr public final static Bfloat16
innr public final static Float16
innr public final static Float32
innr public final static Float64
innr public final static Float8e4m3
innr public final static Float8e5m2
innr public final static Int32
innr public final static Int64
innr public final static Int8
innr public final static Uint32
innr public final static Uint64
innr public final static Uint8

CLSS public final static io.github.nccl4j.highlevel.Element$Bfloat16
 outer io.github.nccl4j.highlevel.Element
intf io.github.nccl4j.highlevel.Element
supr java.lang.Object

CLSS public final static io.github.nccl4j.highlevel.Element$Float16
 outer io.github.nccl4j.highlevel.Element
intf io.github.nccl4j.highlevel.Element
supr java.lang.Object

CLSS public final static io.github.nccl4j.highlevel.Element$Float32
 outer io.github.nccl4j.highlevel.Element
intf io.github.nccl4j.highlevel.Element
supr java.lang.Object

CLSS public final static io.github.nccl4j.highlevel.Element$Float64
 outer io.github.nccl4j.highlevel.Element
intf io.github.nccl4j.highlevel.Element
supr java.lang.Object

CLSS public final static io.github.nccl4j.highlevel.Element$Float8e4m3
 outer io.github.nccl4j.highlevel.Element
intf io.github.nccl4j.highlevel.Element
supr java.lang.Object

CLSS public final static io.github.nccl4j.highlevel.Element$Float8e5m2
 outer io.github.nccl4j.highlevel.Element
intf io.github.nccl4j.highlevel.Element
supr java.lang.Object

CLSS public final static io.github.nccl4j.highlevel.Element$Int32
 outer io.github.nccl4j.highlevel.Element
intf io.github.nccl4j.highlevel.Element
supr java.lang.Object

CLSS public final static io.github.nccl4j.highlevel.Element$Int64
 outer io.github.nccl4j.highlevel.Element
intf io.github.nccl4j.highlevel.Element
supr java.lang.Object

CLSS public final static io.github.nccl4j.highlevel.Element$Int8
 outer io.github.nccl4j.highlevel.Element
intf io.github.nccl4j.highlevel.Element
supr java.lang.Object

CLSS public final static io.github.nccl4j.highlevel.Element$Uint32
 outer io.github.nccl4j.highlevel.Element
intf io.github.nccl4j.highlevel.Element
supr java.lang.Object

CLSS public final static io.github.nccl4j.highlevel.Element$Uint64
 outer io.github.nccl4j.highlevel.Element
intf io.github.nccl4j.highlevel.Element
supr java.lang.Object

CLSS public final static io.github.nccl4j.highlevel.Element$Uint8
 outer io.github.nccl4j.highlevel.Element
intf io.github.nccl4j.highlevel.Element
supr java.lang.Object

CLSS public final io.github.nccl4j.highlevel.ElementType<%0 extends io.github.nccl4j.highlevel.Element>
fld public final static io.github.nccl4j.highlevel.ElementType<io.github.nccl4j.highlevel.Element$Bfloat16> BFLOAT16
fld public final static io.github.nccl4j.highlevel.ElementType<io.github.nccl4j.highlevel.Element$Float16> FLOAT16
fld public final static io.github.nccl4j.highlevel.ElementType<io.github.nccl4j.highlevel.Element$Float32> FLOAT32
fld public final static io.github.nccl4j.highlevel.ElementType<io.github.nccl4j.highlevel.Element$Float64> FLOAT64
fld public final static io.github.nccl4j.highlevel.ElementType<io.github.nccl4j.highlevel.Element$Float8e4m3> FLOAT8E4M3
fld public final static io.github.nccl4j.highlevel.ElementType<io.github.nccl4j.highlevel.Element$Float8e5m2> FLOAT8E5M2
fld public final static io.github.nccl4j.highlevel.ElementType<io.github.nccl4j.highlevel.Element$Int32> INT32
fld public final static io.github.nccl4j.highlevel.ElementType<io.github.nccl4j.highlevel.Element$Int64> INT64
fld public final static io.github.nccl4j.highlevel.ElementType<io.github.nccl4j.highlevel.Element$Int8> INT8
fld public final static io.github.nccl4j.highlevel.ElementType<io.github.nccl4j.highlevel.Element$Uint32> UINT32
fld public final static io.github.nccl4j.highlevel.ElementType<io.github.nccl4j.highlevel.Element$Uint64> UINT64
fld public final static io.github.nccl4j.highlevel.ElementType<io.github.nccl4j.highlevel.Element$Uint8> UINT8
meth public boolean isFloat()
meth public int nativeCode()
meth public int sizeInBytes()
meth public io.github.nccl4j.highlevel.DataType dataType()
meth public java.lang.String toString()
meth public static java.util.List<io.github.nccl4j.highlevel.ElementType<?>> values()
supr java.lang.Object
hfds VALUES,dataType,format,nativeCode

CLSS public abstract interface io.github.nccl4j.highlevel.FailurePolicy
 anno 0 java.lang.FunctionalInterface()
fld public final static io.github.nccl4j.highlevel.FailurePolicy ABORT
fld public final static io.github.nccl4j.highlevel.FailurePolicy THROW
meth public abstract void onFailure(io.github.nccl4j.highlevel.Communicator,io.github.nccl4j.highlevel.NcclException)

CLSS public final io.github.nccl4j.highlevel.FlightRecorder
fld public final static int DEFAULT_KEPT = 255
innr public final static Operation
meth public java.lang.String toJson()
meth public java.util.List<io.github.nccl4j.highlevel.FlightRecorder$Operation> operations()
meth public long recorded()
meth public static java.util.List<java.nio.file.Path> dumpAll(java.nio.file.Path) throws java.io.IOException
meth public void dump(java.nio.file.Path) throws java.io.IOException
supr java.lang.Object
hfds record

CLSS public final static io.github.nccl4j.highlevel.FlightRecorder$Operation
 outer io.github.nccl4j.highlevel.FlightRecorder
cons public init(long,java.util.OptionalInt,java.lang.String,long,java.util.Optional<io.github.nccl4j.highlevel.ElementType<?>>,java.util.Optional<java.lang.String>,java.util.OptionalInt,long,java.util.Optional<java.time.Instant>,java.util.Optional<java.time.Instant>)
meth public final boolean equals(java.lang.Object)
meth public final int hashCode()
meth public final java.lang.String toString()
meth public java.lang.String function()
meth public java.util.Optional<io.github.nccl4j.highlevel.ElementType<?>> type()
meth public java.util.Optional<java.lang.String> op()
meth public java.util.Optional<java.time.Instant> done()
meth public java.util.Optional<java.time.Instant> enqueued()
meth public java.util.OptionalInt group()
meth public java.util.OptionalInt peer()
meth public long count()
meth public long sequence()
meth public long stream()
supr java.lang.Record
hfds count,done,enqueued,function,group,op,peer,sequence,stream,type

CLSS public final !enum io.github.nccl4j.highlevel.GinConnection
 anno 0 io.github.nccl4j.highlevel.Incubating()
fld public final static io.github.nccl4j.highlevel.GinConnection CUSTOM_STRIDE
fld public final static io.github.nccl4j.highlevel.GinConnection FULL
fld public final static io.github.nccl4j.highlevel.GinConnection NONE
fld public final static io.github.nccl4j.highlevel.GinConnection RAIL
fld public final static io.github.nccl4j.highlevel.GinConnection UNKNOWN
meth public int code()
meth public static io.github.nccl4j.highlevel.GinConnection valueOf(java.lang.String)
meth public static io.github.nccl4j.highlevel.GinConnection[] values()
supr java.lang.Enum<io.github.nccl4j.highlevel.GinConnection>
hfds code

CLSS public final !enum io.github.nccl4j.highlevel.GinType
 anno 0 io.github.nccl4j.highlevel.Incubating()
fld public final static io.github.nccl4j.highlevel.GinType EFA_GDA
fld public final static io.github.nccl4j.highlevel.GinType GDAKI
fld public final static io.github.nccl4j.highlevel.GinType GPI
fld public final static io.github.nccl4j.highlevel.GinType NONE
fld public final static io.github.nccl4j.highlevel.GinType PROXY
fld public final static io.github.nccl4j.highlevel.GinType UNKNOWN
meth public int code()
meth public static io.github.nccl4j.highlevel.GinType valueOf(java.lang.String)
meth public static io.github.nccl4j.highlevel.GinType[] values()
supr java.lang.Enum<io.github.nccl4j.highlevel.GinType>
hfds code

CLSS public final io.github.nccl4j.highlevel.Group
intf java.lang.AutoCloseable
meth public java.time.Duration simulate()
meth public static boolean isOpenInThisThread()
meth public static io.github.nccl4j.highlevel.Group open()
meth public static void run(java.lang.Runnable)
meth public void close()
meth public void launch()
supr java.lang.Object
hfds batch,ended,mark

CLSS public final !enum io.github.nccl4j.highlevel.HostCftMode
 anno 0 io.github.nccl4j.highlevel.Incubating()
fld public final static io.github.nccl4j.highlevel.HostCftMode DISABLE
fld public final static io.github.nccl4j.highlevel.HostCftMode ENABLE
fld public final static io.github.nccl4j.highlevel.HostCftMode FALLBACK
meth public int code()
meth public static io.github.nccl4j.highlevel.HostCftMode valueOf(java.lang.String)
meth public static io.github.nccl4j.highlevel.HostCftMode[] values()
supr java.lang.Enum<io.github.nccl4j.highlevel.HostCftMode>
hfds code

CLSS public abstract interface !annotation io.github.nccl4j.highlevel.Incubating
 anno 0 java.lang.annotation.Documented()
 anno 0 java.lang.annotation.Retention(java.lang.annotation.RetentionPolicy value=CLASS)
 anno 0 java.lang.annotation.Target(java.lang.annotation.ElementType[] value=[TYPE, METHOD])
intf java.lang.annotation.Annotation

CLSS public final !enum io.github.nccl4j.highlevel.MemoryStatistic
fld public final static io.github.nccl4j.highlevel.MemoryStatistic GPU_MEM_PERSIST
fld public final static io.github.nccl4j.highlevel.MemoryStatistic GPU_MEM_SUSPEND
fld public final static io.github.nccl4j.highlevel.MemoryStatistic GPU_MEM_SUSPENDED
fld public final static io.github.nccl4j.highlevel.MemoryStatistic GPU_MEM_TOTAL
meth public int code()
meth public static io.github.nccl4j.highlevel.MemoryStatistic valueOf(java.lang.String)
meth public static io.github.nccl4j.highlevel.MemoryStatistic[] values()
supr java.lang.Enum<io.github.nccl4j.highlevel.MemoryStatistic>
hfds code

CLSS public final io.github.nccl4j.highlevel.NcclEncryption
 anno 0 io.github.nccl4j.highlevel.Incubating()
fld public final static int SHORTEST_KEY = 32
innr public final static !enum Support
meth public static boolean isEnabled()
meth public static io.github.nccl4j.highlevel.NcclEncryption$Support support()
meth public static void enable(byte[])
meth public static void enable(java.nio.file.Path) throws java.io.IOException
supr java.lang.Object
hfds FIRST_CALLS,FUNCTION,WITHOUT_TLS,WITH_TLS,enabled

CLSS public final static !enum io.github.nccl4j.highlevel.NcclEncryption$Support
 outer io.github.nccl4j.highlevel.NcclEncryption
fld public final static io.github.nccl4j.highlevel.NcclEncryption$Support BUILT_WITHOUT_TLS
fld public final static io.github.nccl4j.highlevel.NcclEncryption$Support NO_FUNCTION
fld public final static io.github.nccl4j.highlevel.NcclEncryption$Support TLS
fld public final static io.github.nccl4j.highlevel.NcclEncryption$Support UNKNOWN
meth public static io.github.nccl4j.highlevel.NcclEncryption$Support valueOf(java.lang.String)
meth public static io.github.nccl4j.highlevel.NcclEncryption$Support[] values()
supr java.lang.Enum<io.github.nccl4j.highlevel.NcclEncryption$Support>

CLSS public abstract io.github.nccl4j.highlevel.NcclException
cons protected init(java.lang.String)
cons protected init(java.lang.String,java.lang.Throwable)
 anno 0 org.jspecify.annotations.NullUnmarked()
meth public java.lang.String helpId()
meth public java.lang.String toString()
supr java.lang.RuntimeException
hfds serialVersionUID

CLSS public final io.github.nccl4j.highlevel.NcclInterruptedException
meth public java.lang.String helpId()
supr io.github.nccl4j.highlevel.NcclException
hfds serialVersionUID

CLSS public final io.github.nccl4j.highlevel.NcclLibrary
innr public final static !enum Flavor
meth public boolean provides(java.lang.String)
meth public boolean sharesGpus()
meth public io.github.nccl4j.highlevel.AlltoAllvForm alltoAllvForm()
meth public io.github.nccl4j.highlevel.NcclLibrary$Flavor flavor()
meth public io.github.nccl4j.highlevel.Version version()
meth public io.github.nccl4j.library.Engine engine()
meth public java.lang.String toString()
meth public java.nio.file.Path path()
meth public java.util.Optional<java.lang.String> cudaVersion()
meth public static boolean isLoaded()
meth public static io.github.nccl4j.highlevel.CallInterceptor$Installed intercept(io.github.nccl4j.highlevel.CallInterceptor)
meth public static io.github.nccl4j.highlevel.NcclLibrary get()
meth public static io.github.nccl4j.highlevel.NcclLibrary load(io.github.nccl4j.library.Engine)
meth public static io.github.nccl4j.highlevel.NcclLibrary load(java.nio.file.Path)
meth public void require(java.lang.String)
supr java.lang.Object
hfds alltoAllvForm,cudaVersion,engine,flavor,loaded,path,version

CLSS public final static !enum io.github.nccl4j.highlevel.NcclLibrary$Flavor
 outer io.github.nccl4j.highlevel.NcclLibrary
fld public final static io.github.nccl4j.highlevel.NcclLibrary$Flavor HOST
fld public final static io.github.nccl4j.highlevel.NcclLibrary$Flavor NCCL
fld public final static io.github.nccl4j.highlevel.NcclLibrary$Flavor RCCL
fld public final static io.github.nccl4j.highlevel.NcclLibrary$Flavor VCCL
fld public final static io.github.nccl4j.highlevel.NcclLibrary$Flavor VECCL
meth public static io.github.nccl4j.highlevel.NcclLibrary$Flavor valueOf(java.lang.String)
meth public static io.github.nccl4j.highlevel.NcclLibrary$Flavor[] values()
supr java.lang.Enum<io.github.nccl4j.highlevel.NcclLibrary$Flavor>
hfds text

CLSS public final io.github.nccl4j.highlevel.NcclLibraryException
cons public init(java.lang.String)
meth public java.lang.String helpId()
supr io.github.nccl4j.highlevel.NcclException
hfds serialVersionUID

CLSS public final io.github.nccl4j.highlevel.NcclLog
fld public final static java.lang.String LOGGER = "io.github.nccl4j.nccl"
innr public final static !enum Level
innr public final static Line
meth public static boolean isStarted()
meth public static java.util.List<io.github.nccl4j.highlevel.NcclLog$Line> warnings()
meth public static void start(io.github.nccl4j.highlevel.NcclLog$Level)
supr java.lang.Object
hfds DEBUG,DEBUG_FILE,KEPT_WARNINGS,PAUSE_MILLIS,PROPERTY,RESET,WARNINGS_OF_AN_EXCEPTION,level,logger,pid,started,toLogger,toWarnings,warnings
hcls Warning

CLSS public final static !enum io.github.nccl4j.highlevel.NcclLog$Level
 outer io.github.nccl4j.highlevel.NcclLog
fld public final static io.github.nccl4j.highlevel.NcclLog$Level INFO
fld public final static io.github.nccl4j.highlevel.NcclLog$Level TRACE
fld public final static io.github.nccl4j.highlevel.NcclLog$Level WARN
meth public static io.github.nccl4j.highlevel.NcclLog$Level valueOf(java.lang.String)
meth public static io.github.nccl4j.highlevel.NcclLog$Level[] values()
supr java.lang.Enum<io.github.nccl4j.highlevel.NcclLog$Level>
hfds severity

CLSS public final static io.github.nccl4j.highlevel.NcclLog$Line
 outer io.github.nccl4j.highlevel.NcclLog
cons public init(io.github.nccl4j.highlevel.NcclLog$Level,long,int,java.lang.String,java.lang.String,int,java.lang.String)
meth public final boolean equals(java.lang.Object)
meth public final int hashCode()
meth public int device()
meth public int rank()
meth public io.github.nccl4j.highlevel.NcclLog$Level level()
meth public java.lang.String communicator()
meth public java.lang.String place()
meth public java.lang.String text()
meth public java.lang.String toString()
meth public long thread()
supr java.lang.Record
hfds communicator,device,level,place,rank,text,thread

CLSS public final io.github.nccl4j.highlevel.NcclRemoteException
meth public java.lang.String helpId()
meth public java.util.List<java.lang.Integer> lostRanks()
supr io.github.nccl4j.highlevel.NcclResultException
hfds lostRanks,serialVersionUID

CLSS public io.github.nccl4j.highlevel.NcclResultException
meth public int rank()
meth public io.github.nccl4j.highlevel.Result result()
meth public io.github.nccl4j.highlevel.Version libraryVersion()
meth public java.lang.String communicatorName()
meth public java.lang.String helpId()
meth public java.lang.String lastError()
meth public java.lang.String operation()
meth public java.nio.file.Path libraryPath()
meth public java.util.List<io.github.nccl4j.highlevel.NcclLog$Line> warnings()
supr io.github.nccl4j.highlevel.NcclException
hfds code,communicatorName,lastError,libraryPath,operation,rank,serialVersionUID,versionCode,warnings

CLSS public final io.github.nccl4j.highlevel.NcclTimeoutException
meth public java.lang.String helpId()
meth public java.util.List<java.lang.Integer> silentRanks()
supr io.github.nccl4j.highlevel.NcclResultException
hfds serialVersionUID,silentRanks

CLSS public final io.github.nccl4j.highlevel.NcclUsageException
meth public java.lang.String helpId()
supr io.github.nccl4j.highlevel.NcclResultException
hfds serialVersionUID

CLSS public final io.github.nccl4j.highlevel.NoWindowException
meth public java.lang.String helpId()
supr io.github.nccl4j.highlevel.NcclException
hfds serialVersionUID

CLSS public final !enum io.github.nccl4j.highlevel.NvlsHostMode
fld public final static io.github.nccl4j.highlevel.NvlsHostMode DISABLE
fld public final static io.github.nccl4j.highlevel.NvlsHostMode DISABLE_SYMMETRIC_MULTIMEM
fld public final static io.github.nccl4j.highlevel.NvlsHostMode DISABLE_TRANSPORT
fld public final static io.github.nccl4j.highlevel.NvlsHostMode ENABLE
meth public int code()
meth public static io.github.nccl4j.highlevel.NvlsHostMode valueOf(java.lang.String)
meth public static io.github.nccl4j.highlevel.NvlsHostMode[] values()
supr java.lang.Enum<io.github.nccl4j.highlevel.NvlsHostMode>
hfds code

CLSS public final io.github.nccl4j.highlevel.Plan
intf java.lang.AutoCloseable
meth public boolean isOpen()
meth public java.lang.String toString()
meth public void close()
meth public void run()
supr java.lang.Object
hfds core,recorded,resource,submitter,windows,windowsAtCheck

CLSS public final io.github.nccl4j.highlevel.PreMulSum<%0 extends io.github.nccl4j.highlevel.Element>
intf java.lang.AutoCloseable
meth public boolean isOpen()
meth public io.github.nccl4j.highlevel.ElementType<{io.github.nccl4j.highlevel.PreMulSum%0}> type()
meth public void close()
supr io.github.nccl4j.highlevel.ReduceOp
hfds core,resource,type

CLSS public final io.github.nccl4j.highlevel.ProfiledOperation
 anno 0 io.github.nccl4j.highlevel.Incubating()
cons public init(long,java.lang.String,int,int,int,java.lang.String,java.util.OptionalLong,long,long,java.lang.String,long,int,java.lang.String,java.lang.String,int,int,long,java.time.Instant,java.util.Optional<java.time.Duration>,java.util.Optional<java.time.Duration>)
meth public final boolean equals(java.lang.Object)
meth public final int hashCode()
meth public final java.lang.String toString()
meth public int channels()
meth public int nodes()
meth public int peer()
meth public int rank()
meth public int size()
meth public int warps()
meth public java.lang.String algorithm()
meth public java.lang.String function()
meth public java.lang.String name()
meth public java.lang.String protocol()
meth public java.lang.String type()
meth public java.time.Instant launched()
meth public java.util.Optional<java.time.Duration> kernelTime()
meth public java.util.Optional<java.time.Duration> queued()
meth public java.util.OptionalDouble algorithmBandwidth()
meth public java.util.OptionalDouble busBandwidth()
meth public java.util.OptionalLong sequence()
meth public long bytes()
meth public long communicator()
meth public long count()
meth public long number()
meth public long tag()
meth public static double busFactor(java.lang.String,int)
supr java.lang.Record
hfds algorithm,bytes,channels,communicator,count,function,kernelTime,launched,name,nodes,number,peer,protocol,queued,rank,sequence,size,tag,type,warps

CLSS public final io.github.nccl4j.highlevel.Profiler
 anno 0 io.github.nccl4j.highlevel.Incubating()
innr public abstract interface static Subscription
innr public final static Statistics
meth public static boolean isRecording()
meth public static io.github.nccl4j.highlevel.Profiler$Statistics statistics()
meth public static io.github.nccl4j.highlevel.Profiler$Subscription subscribe(java.util.function.Consumer<io.github.nccl4j.highlevel.ProfiledOperation>)
meth public static io.github.nccl4j.highlevel.Profiler$Subscription writeTo(java.nio.file.Path)
meth public static void flush()
meth public static void prepare()
meth public static void start()
meth public static void stop()
supr java.lang.Object
hfds ASSEMBLER,BATCH,CREATIONS,FILES,KERNEL_MEMORY,LINGER,LOCK,LOGS,OLDEST,OLDEST_WITH_SHARED_MEMORY_CHECK,PAUSE,PLUGIN,PROPERTY,READING,SUBSCRIBERS,SWEEP_EVERY,batch,prepared,published,recording,settingRead,stopped,thread,wallOffset,warnedOfMemory

CLSS public final static io.github.nccl4j.highlevel.Profiler$Statistics
 outer io.github.nccl4j.highlevel.Profiler
cons public init(long,long,int,long)
meth public final boolean equals(java.lang.Object)
meth public final int hashCode()
meth public final java.lang.String toString()
meth public int pending()
meth public long dropped()
meth public long incomplete()
meth public long operations()
supr java.lang.Record
hfds dropped,incomplete,operations,pending

CLSS public abstract interface static io.github.nccl4j.highlevel.Profiler$Subscription
 outer io.github.nccl4j.highlevel.Profiler
intf java.lang.AutoCloseable
meth public abstract void close()

CLSS public final io.github.nccl4j.highlevel.Recovery
intf java.lang.AutoCloseable
meth public !varargs long broadcastState(long,io.github.nccl4j.highlevel.CudaStream,io.github.nccl4j.highlevel.DeviceBuffer<?>[])
 anno 0 io.github.nccl4j.highlevel.Incubating()
meth public boolean admit(java.time.Duration)
 anno 0 io.github.nccl4j.highlevel.Incubating()
meth public io.github.nccl4j.highlevel.Communicator communicator()
meth public io.github.nccl4j.highlevel.Communicator recover(java.time.Duration)
meth public io.github.nccl4j.launch.Rendezvous rendezvous(java.lang.String)
 anno 0 io.github.nccl4j.highlevel.Incubating()
meth public java.util.List<java.lang.Integer> members()
meth public static io.github.nccl4j.highlevel.Recovery begin(io.github.nccl4j.launch.Store,java.lang.String,io.github.nccl4j.highlevel.CommunicatorBuilder)
meth public void close()
supr java.lang.Object
hfds MAX_ROUNDS,NOTICE,agreement,boundary,builder,changed,communicator,device,hasState,isCutOff,members,round,store
hcls Copy

CLSS public io.github.nccl4j.highlevel.ReduceOp
fld public final static io.github.nccl4j.highlevel.ReduceOp AVG
fld public final static io.github.nccl4j.highlevel.ReduceOp MAX
fld public final static io.github.nccl4j.highlevel.ReduceOp MIN
fld public final static io.github.nccl4j.highlevel.ReduceOp PROD
fld public final static io.github.nccl4j.highlevel.ReduceOp SUM
meth public final int code()
meth public java.lang.String toString()
meth public static java.util.List<io.github.nccl4j.highlevel.ReduceOp> builtIn()
supr java.lang.Object
hfds BUILT_IN,code,name

CLSS public final io.github.nccl4j.highlevel.Registration
intf java.lang.AutoCloseable
meth public boolean isEffective()
meth public boolean isOpen()
meth public io.github.nccl4j.highlevel.DeviceBuffer<?> buffer()
meth public java.lang.String toString()
meth public long nativeHandle()
meth public void close()
supr java.lang.Object
hfds buffer,handle,resource

CLSS public final io.github.nccl4j.highlevel.Result
fld public final static io.github.nccl4j.highlevel.Result INTERNAL_ERROR
fld public final static io.github.nccl4j.highlevel.Result INVALID_ARGUMENT
fld public final static io.github.nccl4j.highlevel.Result INVALID_USAGE
fld public final static io.github.nccl4j.highlevel.Result IN_PROGRESS
fld public final static io.github.nccl4j.highlevel.Result REMOTE_ERROR
fld public final static io.github.nccl4j.highlevel.Result SUCCESS
fld public final static io.github.nccl4j.highlevel.Result SYSTEM_ERROR
fld public final static io.github.nccl4j.highlevel.Result TIMEOUT
fld public final static io.github.nccl4j.highlevel.Result UNHANDLED_CUDA_ERROR
meth public boolean equals(java.lang.Object)
meth public boolean isKnown()
meth public int code()
meth public int hashCode()
meth public java.lang.String advice()
meth public java.lang.String meaning()
meth public java.lang.String name()
meth public java.lang.String toString()
meth public static io.github.nccl4j.highlevel.Result of(int)
meth public static java.util.List<io.github.nccl4j.highlevel.Result> known()
supr java.lang.Object
hfds KNOWN,advice,code,meaning,name

CLSS public final !enum io.github.nccl4j.highlevel.RevokeFlag
fld public final static io.github.nccl4j.highlevel.RevokeFlag DEFAULT
meth public int code()
meth public static io.github.nccl4j.highlevel.RevokeFlag valueOf(java.lang.String)
meth public static io.github.nccl4j.highlevel.RevokeFlag[] values()
supr java.lang.Enum<io.github.nccl4j.highlevel.RevokeFlag>
hfds code

CLSS public final !enum io.github.nccl4j.highlevel.ScalarResidence
fld public final static io.github.nccl4j.highlevel.ScalarResidence DEVICE
fld public final static io.github.nccl4j.highlevel.ScalarResidence HOST_IMMEDIATE
meth public int code()
meth public static io.github.nccl4j.highlevel.ScalarResidence valueOf(java.lang.String)
meth public static io.github.nccl4j.highlevel.ScalarResidence[] values()
supr java.lang.Enum<io.github.nccl4j.highlevel.ScalarResidence>
hfds code

CLSS public final !enum io.github.nccl4j.highlevel.ShrinkFlag
fld public final static io.github.nccl4j.highlevel.ShrinkFlag ABORT
fld public final static io.github.nccl4j.highlevel.ShrinkFlag DEFAULT
meth public int code()
meth public static io.github.nccl4j.highlevel.ShrinkFlag valueOf(java.lang.String)
meth public static io.github.nccl4j.highlevel.ShrinkFlag[] values()
supr java.lang.Enum<io.github.nccl4j.highlevel.ShrinkFlag>
hfds code

CLSS public final io.github.nccl4j.highlevel.SignalWait
cons public init(int,int,int,int)
meth public final boolean equals(java.lang.Object)
meth public final int hashCode()
meth public final java.lang.String toString()
meth public int context()
meth public int count()
meth public int index()
meth public int peer()
meth public static io.github.nccl4j.highlevel.SignalWait of(int,int)
supr java.lang.Record
hfds context,count,index,peer

CLSS public final io.github.nccl4j.highlevel.StreamTimeoutException
meth public java.lang.String helpId()
meth public java.time.Duration timeout()
supr io.github.nccl4j.highlevel.NcclException
hfds serialVersionUID,timeout

CLSS public final !enum io.github.nccl4j.highlevel.SuspendFlag
fld public final static io.github.nccl4j.highlevel.SuspendFlag MEM
meth public int code()
meth public static io.github.nccl4j.highlevel.SuspendFlag valueOf(java.lang.String)
meth public static io.github.nccl4j.highlevel.SuspendFlag[] values()
supr java.lang.Enum<io.github.nccl4j.highlevel.SuspendFlag>
hfds code

CLSS public final io.github.nccl4j.highlevel.UniqueId
fld public final static int BYTES = 128
meth public boolean equals(java.lang.Object)
meth public byte[] toBytes()
meth public int hashCode()
meth public java.lang.String toString()
meth public static io.github.nccl4j.highlevel.UniqueId create()
meth public static io.github.nccl4j.highlevel.UniqueId of(byte[])
supr java.lang.Object
hfds bytes

CLSS public final io.github.nccl4j.highlevel.Version
cons public init(int,int,int)
intf java.lang.Comparable<io.github.nccl4j.highlevel.Version>
meth public boolean isAtLeast(io.github.nccl4j.highlevel.Version)
meth public final boolean equals(java.lang.Object)
meth public final int hashCode()
meth public int compareTo(io.github.nccl4j.highlevel.Version)
meth public int major()
meth public int minor()
meth public int patch()
meth public java.lang.String toString()
meth public static io.github.nccl4j.highlevel.Version of(int)
supr java.lang.Record
hfds ORDER,major,minor,patch

CLSS public final io.github.nccl4j.highlevel.Window
intf java.lang.AutoCloseable
meth public boolean contains(io.github.nccl4j.highlevel.DeviceBuffer<?>)
meth public boolean isOpen()
meth public io.github.nccl4j.highlevel.DeviceBuffer<?> buffer()
meth public java.lang.String toString()
meth public java.util.OptionalLong multimemAddress()
 anno 0 io.github.nccl4j.highlevel.Incubating()
meth public java.util.OptionalLong peerAddress(int)
 anno 0 io.github.nccl4j.highlevel.Incubating()
meth public java.util.Set<io.github.nccl4j.highlevel.WindowFlag> flags()
meth public long length()
meth public long nativeHandle()
meth public long sizeInBytes()
meth public long userAddress()
meth public void close()
supr java.lang.Object
hfds REGISTER,buffer,core,flags,handle,resource,symmetric,windows
hcls Registering

CLSS public final !enum io.github.nccl4j.highlevel.WindowFlag
fld public final static int REQUIRED_ALIGNMENT = 4096
fld public final static io.github.nccl4j.highlevel.WindowFlag CFT_COUNTED
fld public final static io.github.nccl4j.highlevel.WindowFlag COLL_SYMMETRIC
fld public final static io.github.nccl4j.highlevel.WindowFlag DEFAULT
fld public final static io.github.nccl4j.highlevel.WindowFlag GIN_ONLY
fld public final static io.github.nccl4j.highlevel.WindowFlag STRICT_ORDERING
meth public int code()
meth public io.github.nccl4j.highlevel.Version since()
meth public static io.github.nccl4j.highlevel.WindowFlag valueOf(java.lang.String)
meth public static io.github.nccl4j.highlevel.WindowFlag[] values()
supr java.lang.Enum<io.github.nccl4j.highlevel.WindowFlag>
hfds code,since

CLSS public final io.github.nccl4j.highlevel.Work
meth public boolean isDone()
meth public java.lang.String toString()
meth public java.util.concurrent.CompletableFuture<java.lang.Void> toFuture()
meth public java.util.concurrent.CompletableFuture<java.lang.Void> toFuture(java.util.concurrent.Executor)
meth public void await()
meth public void await(java.time.Duration)
supr java.lang.Object
hfds work

CLSS abstract interface io.github.nccl4j.highlevel.package-info
 anno 0 org.jspecify.annotations.NullMarked()

CLSS public abstract interface io.github.nccl4j.launch.Inquiry
intf java.lang.AutoCloseable
meth public abstract java.util.Map<java.lang.Integer,byte[]> ask(java.time.Duration)
meth public abstract void close()

CLSS public final io.github.nccl4j.launch.JobStatus
cons public init(java.lang.String,int,java.util.List<io.github.nccl4j.launch.RankStatus>)
meth public final boolean equals(java.lang.Object)
meth public final int hashCode()
meth public final java.lang.String toString()
meth public int restart()
meth public java.lang.String job()
meth public java.util.List<io.github.nccl4j.launch.RankStatus> ranks()
supr java.lang.Record
hfds job,ranks,restart

CLSS public final io.github.nccl4j.launch.LostRank
cons public init(int,java.lang.String,java.lang.String)
meth public final boolean equals(java.lang.Object)
meth public final int hashCode()
meth public int rank()
meth public java.lang.String process()
meth public java.lang.String reason()
meth public java.lang.String toString()
supr java.lang.Record
hfds process,rank,reason

CLSS public abstract interface io.github.nccl4j.launch.Membership
intf java.lang.AutoCloseable
meth public abstract java.util.Map<java.lang.Integer,java.time.Duration> silent()
meth public abstract void close()

CLSS public abstract interface io.github.nccl4j.launch.ObserverProvider
fld public final static java.lang.String SEPARATOR = "://"
meth public abstract io.github.nccl4j.launch.StoreObserver connect(java.lang.String,byte[],java.time.Duration)
meth public abstract io.github.nccl4j.launch.StoreObserver connect(java.lang.String,java.time.Duration)
meth public abstract java.lang.String scheme()

CLSS public final io.github.nccl4j.launch.RankInfo
cons public init(int,int,int,int,java.lang.String,int,java.lang.String,int,io.github.nccl4j.launch.RankInfo$Source)
fld public final static int DEFAULT_PORT = 29500
fld public final static int UNKNOWN = -1
innr public final static !enum Source
meth public boolean hasLocalRank()
meth public boolean isOnOneHost()
meth public boolean isSingle()
meth public final boolean equals(java.lang.Object)
meth public final int hashCode()
meth public int device(int)
meth public int localRank()
meth public int localWorldSize()
meth public int masterPort()
meth public int rank()
meth public int restart()
meth public int worldSize()
meth public io.github.nccl4j.launch.RankInfo$Source source()
meth public java.lang.String job()
meth public java.lang.String masterAddress()
meth public java.lang.String toString()
meth public static io.github.nccl4j.launch.RankInfo from(java.util.Map<java.lang.String,java.lang.String>,java.util.Map<java.lang.String,java.lang.String>)
meth public static io.github.nccl4j.launch.RankInfo fromEnvironment()
supr java.lang.Record
hfds MAX_PORT,job,localRank,localWorldSize,masterAddress,masterPort,rank,restart,source,worldSize

CLSS public final static !enum io.github.nccl4j.launch.RankInfo$Source
 outer io.github.nccl4j.launch.RankInfo
fld public final static io.github.nccl4j.launch.RankInfo$Source FLUX
fld public final static io.github.nccl4j.launch.RankInfo$Source KUBERNETES
fld public final static io.github.nccl4j.launch.RankInfo$Source LSF
fld public final static io.github.nccl4j.launch.RankInfo$Source MPI
fld public final static io.github.nccl4j.launch.RankInfo$Source MVAPICH
fld public final static io.github.nccl4j.launch.RankInfo$Source OPEN_MPI
fld public final static io.github.nccl4j.launch.RankInfo$Source PALS
fld public final static io.github.nccl4j.launch.RankInfo$Source PMIX
fld public final static io.github.nccl4j.launch.RankInfo$Source PROPERTIES
fld public final static io.github.nccl4j.launch.RankInfo$Source SINGLE
fld public final static io.github.nccl4j.launch.RankInfo$Source SLURM
fld public final static io.github.nccl4j.launch.RankInfo$Source TORCHRUN
fld public final static io.github.nccl4j.launch.RankInfo$Source TRAINER
meth public java.lang.String toString()
meth public static io.github.nccl4j.launch.RankInfo$Source valueOf(java.lang.String)
meth public static io.github.nccl4j.launch.RankInfo$Source[] values()
supr java.lang.Enum<io.github.nccl4j.launch.RankInfo$Source>
hfds launcher

CLSS public final io.github.nccl4j.launch.RankStatus
cons public init(int,io.github.nccl4j.launch.RankStatus$State,java.lang.String,java.time.Duration,java.util.Map<java.lang.String,java.lang.String>,int)
innr public final static !enum State
meth public final boolean equals(java.lang.Object)
meth public final int hashCode()
meth public final java.lang.String toString()
meth public int omitted()
meth public int rank()
meth public io.github.nccl4j.launch.RankStatus$State state()
meth public java.lang.String process()
meth public java.time.Duration silence()
meth public java.util.Map<java.lang.String,java.lang.String> texts()
supr java.lang.Record
hfds omitted,process,rank,silence,state,texts

CLSS public final static !enum io.github.nccl4j.launch.RankStatus$State
 outer io.github.nccl4j.launch.RankStatus
fld public final static io.github.nccl4j.launch.RankStatus$State ANSWERED
fld public final static io.github.nccl4j.launch.RankStatus$State LEFT
fld public final static io.github.nccl4j.launch.RankStatus$State LOST
fld public final static io.github.nccl4j.launch.RankStatus$State MISSING
fld public final static io.github.nccl4j.launch.RankStatus$State NO_ANSWER
fld public final static io.github.nccl4j.launch.RankStatus$State SILENT
meth public static io.github.nccl4j.launch.RankStatus$State valueOf(java.lang.String)
meth public static io.github.nccl4j.launch.RankStatus$State[] values()
supr java.lang.Enum<io.github.nccl4j.launch.RankStatus$State>

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

CLSS public io.github.nccl4j.launch.RendezvousException
cons public init(java.lang.String)
cons public init(java.lang.String,java.lang.Throwable)
 anno 0 org.jspecify.annotations.NullUnmarked()
meth public java.lang.String helpId()
supr io.github.nccl4j.highlevel.NcclException
hfds serialVersionUID

CLSS public final io.github.nccl4j.launch.RendezvousTimeoutException
cons public init(java.lang.String,java.util.List<java.lang.Integer>)
meth public java.lang.String helpId()
meth public java.util.List<java.lang.Integer> missing()
supr io.github.nccl4j.launch.RendezvousException
hfds missing,serialVersionUID

CLSS public abstract interface io.github.nccl4j.launch.StatusEntry
intf java.lang.AutoCloseable
meth public abstract void close()

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

CLSS public abstract interface io.github.nccl4j.launch.StoreObserver
intf java.lang.AutoCloseable
meth public abstract java.lang.String address()
meth public abstract java.util.List<io.github.nccl4j.launch.JobStatus> look(java.time.Duration)
meth public abstract void close()
meth public static io.github.nccl4j.launch.StoreObserver connect(java.lang.String,byte[],java.time.Duration)
meth public static io.github.nccl4j.launch.StoreObserver connect(java.lang.String,java.time.Duration)

CLSS public final io.github.nccl4j.launch.TcpStore
innr public final static Builder
intf io.github.nccl4j.launch.Store
meth public boolean delete(java.lang.String)
meth public byte[] broadcast(java.lang.String,int,java.util.function.Supplier<byte[]>,java.time.Duration)
meth public byte[] get(java.lang.String,java.time.Duration)
meth public int attempt()
meth public int rank()
meth public int size()
meth public io.github.nccl4j.launch.Rendezvous among(java.lang.String,java.util.List<java.lang.Integer>)
meth public io.github.nccl4j.launch.Rendezvous among(java.lang.String,java.util.List<java.lang.Integer>,java.util.List<java.lang.Integer>)
meth public io.github.nccl4j.launch.Rendezvous scope(java.lang.String)
meth public java.lang.String address()
meth public java.lang.String toString()
meth public java.time.Duration timeout()
meth public java.util.List<byte[]> gather(java.lang.String,byte[],java.time.Duration)
meth public java.util.List<java.lang.Integer> attempts()
meth public java.util.List<java.lang.Integer> gone()
meth public java.util.Optional<io.github.nccl4j.launch.Inquiry> inquiry(java.lang.String,java.util.function.Supplier<byte[]>)
meth public java.util.Optional<io.github.nccl4j.launch.Membership> membership(java.lang.String,int,java.util.function.Consumer<io.github.nccl4j.launch.LostRank>)
meth public java.util.Optional<io.github.nccl4j.launch.StatusEntry> status(java.lang.String,java.util.function.Supplier<java.lang.String>)
meth public long add(java.lang.String,long)
meth public static io.github.nccl4j.launch.TcpStore ofProcess(io.github.nccl4j.launch.RankInfo,java.time.Duration)
meth public static io.github.nccl4j.launch.TcpStore open(io.github.nccl4j.launch.RankInfo)
meth public static io.github.nccl4j.launch.TcpStore$Builder builder()
meth public void abort(java.lang.String)
meth public void await(java.util.Collection<java.lang.String>,java.time.Duration)
meth public void barrier(java.lang.String,java.time.Duration)
meth public void close()
meth public void set(java.lang.String,byte[])
supr java.lang.Object
hfds EXIT_TIMEOUT,PROCESS_STORE,allRanks,ofProcess,self,session,timeout
hcls ProcessStore

CLSS public final static io.github.nccl4j.launch.TcpStore$Builder
 outer io.github.nccl4j.launch.TcpStore
meth public io.github.nccl4j.launch.TcpStore open(io.github.nccl4j.launch.RankInfo)
meth public io.github.nccl4j.launch.TcpStore$Builder bind(java.net.InetAddress)
meth public io.github.nccl4j.launch.TcpStore$Builder secret(byte[])
meth public io.github.nccl4j.launch.TcpStore$Builder timeout(java.time.Duration)
meth public io.github.nccl4j.launch.TcpStore$Builder withoutSecret()
meth public io.github.nccl4j.launch.TcpStore$Builder withoutServer()
supr java.lang.Object
hfds BIND,bind,environment,secret,timeout,withoutSecret,withoutServer

CLSS public final io.github.nccl4j.launch.TcpStoreServer
intf java.lang.AutoCloseable
meth public int port()
meth public java.lang.String address()
meth public java.lang.String toString()
meth public static io.github.nccl4j.launch.TcpStoreServer start(java.net.InetAddress,int)
meth public static io.github.nccl4j.launch.TcpStoreServer start(java.net.InetAddress,int,byte[])
meth public void close()
supr java.lang.Object
hfds server

CLSS abstract interface io.github.nccl4j.launch.package-info
 anno 0 org.jspecify.annotations.NullMarked()

CLSS public io.github.nccl4j.library.DeviceBinding
cons protected init()
meth protected static long addressOf(org.bytedeco.javacpp.Pointer)
 anno 0 org.jspecify.annotations.NullUnmarked()
supr io.github.nccl4j.presets.nccl_device

CLSS public final !enum io.github.nccl4j.library.Engine
fld public final static io.github.nccl4j.library.Engine HOST
fld public final static io.github.nccl4j.library.Engine NCCL
fld public final static io.github.nccl4j.library.Engine RCCL
meth public java.lang.String toString()
meth public static io.github.nccl4j.library.Engine valueOf(java.lang.String)
meth public static io.github.nccl4j.library.Engine[] values()
supr java.lang.Enum<io.github.nccl4j.library.Engine>

CLSS public final io.github.nccl4j.library.HostEngine
 anno 0 org.bytedeco.javacpp.annotation.Properties(java.lang.Class[] inherit=[class io.github.nccl4j.presets.nccl], java.lang.String global="", java.lang.String helper="", java.lang.String target="", java.lang.String[] names=[], org.bytedeco.javacpp.annotation.Platform[] value=[])
meth public static int eventCreate(long)
 anno 0 org.bytedeco.javacpp.annotation.Name(java.lang.String[] value=["hostEventCreate"])
 anno 0 org.bytedeco.javacpp.annotation.Namespace(java.lang.String value="nccl4j")
meth public static int eventDestroy(long)
 anno 0 org.bytedeco.javacpp.annotation.Name(java.lang.String[] value=["hostEventDestroy"])
 anno 0 org.bytedeco.javacpp.annotation.Namespace(java.lang.String value="nccl4j")
meth public static int eventElapsedTime(double[],long,long)
 anno 0 org.bytedeco.javacpp.annotation.Name(java.lang.String[] value=["hostEventElapsedTime"])
 anno 0 org.bytedeco.javacpp.annotation.Namespace(java.lang.String value="nccl4j")
meth public static int eventQuery(long)
 anno 0 org.bytedeco.javacpp.annotation.Name(java.lang.String[] value=["hostEventQuery"])
 anno 0 org.bytedeco.javacpp.annotation.Namespace(java.lang.String value="nccl4j")
meth public static int eventRecord(long,long)
 anno 0 org.bytedeco.javacpp.annotation.Name(java.lang.String[] value=["hostEventRecord"])
 anno 0 org.bytedeco.javacpp.annotation.Namespace(java.lang.String value="nccl4j")
meth public static int eventSynchronize(long)
 anno 0 org.bytedeco.javacpp.annotation.Name(java.lang.String[] value=["hostEventSynchronize"])
 anno 0 org.bytedeco.javacpp.annotation.Namespace(java.lang.String value="nccl4j")
meth public static int free(long)
 anno 0 org.bytedeco.javacpp.annotation.Name(java.lang.String[] value=["hostFree"])
 anno 0 org.bytedeco.javacpp.annotation.Namespace(java.lang.String value="nccl4j")
meth public static int graphDestroy(long)
 anno 0 org.bytedeco.javacpp.annotation.Name(java.lang.String[] value=["hostGraphDestroy"])
 anno 0 org.bytedeco.javacpp.annotation.Namespace(java.lang.String value="nccl4j")
meth public static int graphLaunch(long,long)
 anno 0 org.bytedeco.javacpp.annotation.Name(java.lang.String[] value=["hostGraphLaunch"])
 anno 0 org.bytedeco.javacpp.annotation.Namespace(java.lang.String value="nccl4j")
meth public static int memcpyAsync(long,long,long,long)
 anno 0 org.bytedeco.javacpp.annotation.Name(java.lang.String[] value=["hostMemcpyAsync"])
 anno 0 org.bytedeco.javacpp.annotation.Namespace(java.lang.String value="nccl4j")
meth public static int streamBeginCapture(long)
 anno 0 org.bytedeco.javacpp.annotation.Name(java.lang.String[] value=["hostStreamBeginCapture"])
 anno 0 org.bytedeco.javacpp.annotation.Namespace(java.lang.String value="nccl4j")
meth public static int streamCreate(long)
 anno 0 org.bytedeco.javacpp.annotation.Name(java.lang.String[] value=["hostStreamCreate"])
 anno 0 org.bytedeco.javacpp.annotation.Namespace(java.lang.String value="nccl4j")
meth public static int streamDestroy(long)
 anno 0 org.bytedeco.javacpp.annotation.Name(java.lang.String[] value=["hostStreamDestroy"])
 anno 0 org.bytedeco.javacpp.annotation.Namespace(java.lang.String value="nccl4j")
meth public static int streamEndCapture(long,long)
 anno 0 org.bytedeco.javacpp.annotation.Name(java.lang.String[] value=["hostStreamEndCapture"])
 anno 0 org.bytedeco.javacpp.annotation.Namespace(java.lang.String value="nccl4j")
meth public static int streamIsCapturing(long,int[])
 anno 0 org.bytedeco.javacpp.annotation.Name(java.lang.String[] value=["hostStreamIsCapturing"])
 anno 0 org.bytedeco.javacpp.annotation.Namespace(java.lang.String value="nccl4j")
meth public static int streamQuery(long)
 anno 0 org.bytedeco.javacpp.annotation.Name(java.lang.String[] value=["hostStreamQuery"])
 anno 0 org.bytedeco.javacpp.annotation.Namespace(java.lang.String value="nccl4j")
meth public static int streamSynchronize(long)
 anno 0 org.bytedeco.javacpp.annotation.Name(java.lang.String[] value=["hostStreamSynchronize"])
 anno 0 org.bytedeco.javacpp.annotation.Namespace(java.lang.String value="nccl4j")
meth public static int streamSynchronizeFor(long,double)
 anno 0 org.bytedeco.javacpp.annotation.Name(java.lang.String[] value=["hostStreamSynchronizeFor"])
 anno 0 org.bytedeco.javacpp.annotation.Namespace(java.lang.String value="nccl4j")
meth public static int streamWaitEvent(long,long)
 anno 0 org.bytedeco.javacpp.annotation.Name(java.lang.String[] value=["hostStreamWaitEvent"])
 anno 0 org.bytedeco.javacpp.annotation.Namespace(java.lang.String value="nccl4j")
meth public static long busyStreams()
 anno 0 org.bytedeco.javacpp.annotation.Name(java.lang.String[] value=["hostBusyStreams"])
 anno 0 org.bytedeco.javacpp.annotation.Namespace(java.lang.String value="nccl4j")
supr java.lang.Object

CLSS public io.github.nccl4j.library.LibraryBinding
cons protected init()
meth protected static long addressOf(org.bytedeco.javacpp.Pointer)
 anno 0 org.jspecify.annotations.NullUnmarked()
supr io.github.nccl4j.presets.nccl

CLSS public final io.github.nccl4j.library.LibrarySearch
cons public init(java.util.Map<java.lang.String,java.lang.String>)
meth public java.util.List<java.lang.String> cuda(java.lang.String)
meth public java.util.List<java.lang.String> extension(java.lang.String,int)
supr java.lang.Object
hfds CUDA_13,SKIPPED,environment

CLSS public final io.github.nccl4j.library.NativeLibrary
 anno 0 org.bytedeco.javacpp.annotation.Properties(java.lang.Class[] inherit=[class io.github.nccl4j.presets.nccl], java.lang.String global="", java.lang.String helper="", java.lang.String target="", java.lang.String[] names=[], org.bytedeco.javacpp.annotation.Platform[] value=[])
innr public final static Candidate
innr public final static EngineChoice
meth public static boolean isLoaded()
meth public static boolean isVccl()
meth public static boolean provides(java.lang.String)
meth public static boolean wasCalled(java.lang.String)
meth public static int alltoAllvArguments()
meth public static int gpuCount()
meth public static int versionCode()
meth public static io.github.nccl4j.library.Engine engine()
meth public static io.github.nccl4j.library.NativeLibrary$EngineChoice automaticEngine(int)
meth public static java.lang.String path()
meth public static java.lang.String release(java.lang.String)
meth public static java.lang.String version()
meth public static java.util.List<io.github.nccl4j.library.NativeLibrary$Candidate> candidates()
meth public static java.util.List<java.lang.String> otherCopies()
meth public static java.util.List<java.lang.String> shadowed()
meth public static void initialize()
meth public static void setVariable(java.lang.String,java.lang.String)
meth public static void unpack(java.lang.Class<?>)
meth public static void use(io.github.nccl4j.library.Engine)
meth public static void use(java.lang.String)
supr java.lang.Object
hfds ALL_TO_ALL_V,ENGINE,HOST_RESOURCE,LIBRARY,LONGEST_PATH,failure

CLSS public final static io.github.nccl4j.library.NativeLibrary$Candidate
 outer io.github.nccl4j.library.NativeLibrary
cons public init(java.lang.String,java.lang.String)
meth public final boolean equals(java.lang.Object)
meth public final int hashCode()
meth public final java.lang.String toString()
meth public java.lang.String place()
meth public java.lang.String problem()
supr java.lang.Record
hfds place,problem

CLSS public final static io.github.nccl4j.library.NativeLibrary$EngineChoice
 outer io.github.nccl4j.library.NativeLibrary
cons public init(io.github.nccl4j.library.Engine,java.lang.String)
meth public final boolean equals(java.lang.Object)
meth public final int hashCode()
meth public final java.lang.String toString()
meth public io.github.nccl4j.library.Engine engine()
meth public java.lang.String reason()
supr java.lang.Record
hfds engine,reason

CLSS public final io.github.nccl4j.library.SecretFile
meth public static byte[] read(java.nio.file.Path) throws java.io.IOException
supr java.lang.Object
hfds OF_OTHERS,PERMISSIONS,READ_BY_GROUP

CLSS public final io.github.nccl4j.library.StructInitializers
 anno 0 org.bytedeco.javacpp.annotation.Properties(java.lang.Class[] inherit=[class io.github.nccl4j.presets.nccl], java.lang.String global="", java.lang.String helper="", java.lang.String target="", java.lang.String[] names=[], org.bytedeco.javacpp.annotation.Platform[] value=[])
meth public static void collConfig(long)
meth public static void commProperties(long)
meth public static void config(long)
meth public static void encryptionConfig(long)
meth public static void simInfo(long)
supr java.lang.Object

CLSS public final io.github.nccl4j.library.SystemText
meth public static byte[] toC(java.lang.String)
meth public static java.lang.String fromC(byte[],int)
meth public static java.lang.String property(java.lang.String)
meth public static java.lang.String text(java.nio.file.Path)
meth public static java.nio.file.Path path(java.lang.String)
meth public static java.util.Map<java.lang.String,java.lang.String> environment()
supr java.lang.Object
hfds ENCODING,LOST

CLSS abstract interface io.github.nccl4j.library.package-info
 anno 0 org.jspecify.annotations.NullMarked()

CLSS public io.github.nccl4j.presets.nccl
 anno 0 org.bytedeco.javacpp.annotation.Properties(java.lang.Class[] inherit=[], java.lang.String global="io.github.nccl4j.global.nccl", java.lang.String helper="io.github.nccl4j.library.LibraryBinding", java.lang.String target="io.github.nccl4j.nccl", java.lang.String[] names=[], org.bytedeco.javacpp.annotation.Platform[] value=[anno 0 org.bytedeco.javacpp.annotation.Platform(java.lang.String library="jninccl4j", java.lang.String[] cinclude=[], java.lang.String[] compiler=["cpp17"], java.lang.String[] define=[], java.lang.String[] exclude=["alltoallv.h"], java.lang.String[] executable=[], java.lang.String[] executablepath=[], java.lang.String[] extension=[], java.lang.String[] framework=[], java.lang.String[] frameworkpath=[], java.lang.String[] include=["<nccl.h>", "nccl4j_library.h", "nccl4j_dlpack.h", "nccl4j_profiler.h", "alltoallv.h"], java.lang.String[] includepath=[], java.lang.String[] includeresource=[], java.lang.String[] link=[], java.lang.String[] linkpath=[], java.lang.String[] linkresource=[], java.lang.String[] not=[], java.lang.String[] pattern=[], java.lang.String[] pragma=[], java.lang.String[] preload=[], java.lang.String[] preloadpath=[], java.lang.String[] preloadresource=[], java.lang.String[] resource=[], java.lang.String[] resourcepath=[], java.lang.String[] value=["linux-x86_64", "linux-arm64"])])
cons public init()
intf org.bytedeco.javacpp.tools.InfoMapper
meth public static void derived(org.bytedeco.javacpp.tools.InfoMap,java.lang.String)
meth public void map(org.bytedeco.javacpp.tools.InfoMap)
supr java.lang.Object

CLSS public io.github.nccl4j.presets.nccl_device
 anno 0 org.bytedeco.javacpp.annotation.Properties(java.lang.Class[] inherit=[class io.github.nccl4j.presets.nccl], java.lang.String global="io.github.nccl4j.global.nccl_device", java.lang.String helper="io.github.nccl4j.library.DeviceBinding", java.lang.String target="io.github.nccl4j.nccl_device", java.lang.String[] names=[], org.bytedeco.javacpp.annotation.Platform[] value=[anno 0 org.bytedeco.javacpp.annotation.Platform(java.lang.String library="jninccl4j", java.lang.String[] cinclude=[], java.lang.String[] compiler=[], java.lang.String[] define=[], java.lang.String[] exclude=[], java.lang.String[] executable=[], java.lang.String[] executablepath=[], java.lang.String[] extension=[], java.lang.String[] framework=[], java.lang.String[] frameworkpath=[], java.lang.String[] include=["<nccl_device.h>"], java.lang.String[] includepath=[], java.lang.String[] includeresource=[], java.lang.String[] link=[], java.lang.String[] linkpath=[], java.lang.String[] linkresource=[], java.lang.String[] not=[], java.lang.String[] pattern=[], java.lang.String[] pragma=[], java.lang.String[] preload=[], java.lang.String[] preloadpath=[], java.lang.String[] preloadresource=[], java.lang.String[] resource=[], java.lang.String[] resourcepath=[], java.lang.String[] value=[])])
cons public init()
intf org.bytedeco.javacpp.tools.InfoMapper
meth public void map(org.bytedeco.javacpp.tools.InfoMap)
supr java.lang.Object

CLSS abstract interface io.github.nccl4j.presets.package-info
 anno 0 org.jspecify.annotations.NullMarked()

CLSS public final io.github.nccl4j.ras.RasClient
fld public final static int DEFAULT_PORT = 28028
intf java.lang.AutoCloseable
meth public java.lang.String status(io.github.nccl4j.ras.RasFormat,java.time.Duration)
meth public java.lang.String toString()
meth public java.net.InetSocketAddress remoteAddress()
meth public static io.github.nccl4j.ras.RasClient connect(java.lang.String,java.time.Duration)
meth public static java.lang.String defaultAddress()
meth public void close()
meth public void monitor(io.github.nccl4j.ras.RasFormat,java.util.Set<io.github.nccl4j.ras.RasEvents>,java.util.function.Consumer<java.lang.String>)
supr java.lang.Object
hfds ATTEMPT_NANOS,GATHERINGS,GATHER_SECONDS,MAX_LINE_BYTES,MAX_REPORT_BYTES,MAX_TIMEOUT_SECONDS,NO_DEADLINE,PROTOCOL,asked,gatherSeconds,in,remote,service,socket

CLSS public final !enum io.github.nccl4j.ras.RasDefect
fld public final static io.github.nccl4j.ras.RasDefect CHANGED_PROCESSES
fld public final static io.github.nccl4j.ras.RasDefect MISSING_RANKS
fld public final static io.github.nccl4j.ras.RasDefect UNFINISHED_COMMUNICATOR
fld public final static io.github.nccl4j.ras.RasDefect UNWRITTEN_STATUS
meth public java.lang.String description()
meth public static io.github.nccl4j.ras.RasDefect valueOf(java.lang.String)
meth public static io.github.nccl4j.ras.RasDefect[] values()
meth public static java.lang.String warning(int)
meth public static java.util.List<io.github.nccl4j.ras.RasDefect> of(int)
supr java.lang.Enum<io.github.nccl4j.ras.RasDefect>
hfds condition,first,last,reports

CLSS public final !enum io.github.nccl4j.ras.RasEvents
fld public final static io.github.nccl4j.ras.RasEvents LIFECYCLE
fld public final static io.github.nccl4j.ras.RasEvents TRACE
meth public static io.github.nccl4j.ras.RasEvents valueOf(java.lang.String)
meth public static io.github.nccl4j.ras.RasEvents[] values()
supr java.lang.Enum<io.github.nccl4j.ras.RasEvents>

CLSS public final io.github.nccl4j.ras.RasException
meth public java.lang.String helpId()
supr io.github.nccl4j.highlevel.NcclException
hfds serialVersionUID

CLSS public final !enum io.github.nccl4j.ras.RasFormat
fld public final static io.github.nccl4j.ras.RasFormat JSON
fld public final static io.github.nccl4j.ras.RasFormat TEXT
fld public final static io.github.nccl4j.ras.RasFormat VERBOSE_TEXT
meth public static io.github.nccl4j.ras.RasFormat valueOf(java.lang.String)
meth public static io.github.nccl4j.ras.RasFormat[] values()
supr java.lang.Enum<io.github.nccl4j.ras.RasFormat>

CLSS abstract interface io.github.nccl4j.ras.package-info
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

CLSS public java.lang.Exception
cons protected init(java.lang.String,java.lang.Throwable,boolean,boolean)
cons public init()
cons public init(java.lang.String)
cons public init(java.lang.String,java.lang.Throwable)
cons public init(java.lang.Throwable)
supr java.lang.Throwable
hfds serialVersionUID

CLSS public abstract interface !annotation java.lang.FunctionalInterface
 anno 0 java.lang.annotation.Documented()
 anno 0 java.lang.annotation.Retention(java.lang.annotation.RetentionPolicy value=RUNTIME)
 anno 0 java.lang.annotation.Target(java.lang.annotation.ElementType[] value=[TYPE])
intf java.lang.annotation.Annotation

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

CLSS public abstract java.lang.Record
cons protected init()
meth public abstract boolean equals(java.lang.Object)
meth public abstract int hashCode()
meth public abstract java.lang.String toString()
supr java.lang.Object

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

