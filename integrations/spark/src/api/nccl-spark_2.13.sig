#Signature file v4.1
#Version 1.0

CLSS public abstract interface io.github.nccl4j.spark.CommunicatorFunction<%0 extends java.lang.Object, %1 extends java.lang.Object>
 anno 0 java.lang.FunctionalInterface()
intf java.io.Serializable
meth public abstract java.util.Iterator<{io.github.nccl4j.spark.CommunicatorFunction%1}> call(io.github.nccl4j.highlevel.Communicator,java.util.Iterator<{io.github.nccl4j.spark.CommunicatorFunction%0}>) throws java.lang.Exception

CLSS public abstract interface io.github.nccl4j.spark.CommunicatorSettings
 anno 0 java.lang.FunctionalInterface()
intf java.io.Serializable
meth public abstract void apply(io.github.nccl4j.highlevel.CommunicatorBuilder)

CLSS public final io.github.nccl4j.spark.NcclRdd<%0 extends java.lang.Object>
meth public <%0 extends java.lang.Object> org.apache.spark.api.java.JavaRDD<{%%0}> mapPartitions(io.github.nccl4j.spark.CommunicatorFunction<{io.github.nccl4j.spark.NcclRdd%0},{%%0}>)
meth public io.github.nccl4j.spark.NcclRdd<{io.github.nccl4j.spark.NcclRdd%0}> configure(io.github.nccl4j.spark.CommunicatorSettings)
meth public io.github.nccl4j.spark.NcclRdd<{io.github.nccl4j.spark.NcclRdd%0}> deadline(java.time.Duration)
meth public static <%0 extends java.lang.Object> io.github.nccl4j.spark.NcclRdd<{%%0}> of(org.apache.spark.api.java.JavaRDD<{%%0}>)
supr java.lang.Object
hfds deadline,rdd,settings

CLSS abstract interface io.github.nccl4j.spark.package-info
 anno 0 org.jspecify.annotations.NullMarked()

CLSS public abstract interface java.io.Serializable

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

