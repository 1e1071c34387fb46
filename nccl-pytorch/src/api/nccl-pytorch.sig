#Signature file v4.1
#Version 1.0

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
meth public void close()
supr java.lang.Object
hfds TYPES,buffer,tensor
hcls Memory

CLSS public final io.github.nccl4j.pytorch.TensorCollectives
supr java.lang.Object

CLSS abstract interface io.github.nccl4j.pytorch.package-info
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

