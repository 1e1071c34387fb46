package io.github.nccl4j.mutation;

import java.util.Set;
import org.pitest.mutationtest.engine.MutationIdentifier;
import org.pitest.mutationtest.engine.gregor.MethodInfo;
import org.pitest.mutationtest.engine.gregor.MethodMutatorFactory;
import org.pitest.mutationtest.engine.gregor.MutationContext;
import org.pitest.reloc.asm.MethodVisitor;
import org.pitest.reloc.asm.Opcodes;
import org.pitest.reloc.asm.Type;

/** A fault that PIT lacks: the last two arguments of a call, which have the same type, change places. */
final class SwappedArguments implements MethodMutatorFactory {
    /** The order of their arguments does not matter. */
    private static final Set<String> SYMMETRIC =
            Set.of("java/util/Set::of", "java/util/Objects::equals", "java/lang/Math::min", "java/lang/Math::max");

    @Override
    public MethodVisitor create(MutationContext context, MethodInfo method, MethodVisitor next) {
        return new MethodVisitor(Opcodes.ASM9, next) {
            @Override
            public void visitMethodInsn(int opcode, String owner, String name, String descriptor, boolean isInterface) {
                Type[] types = Type.getArgumentTypes(descriptor);
                int count = types.length;
                // Two words each would need more than one instruction.
                if (count >= 2
                        && types[count - 1].equals(types[count - 2])
                        && types[count - 1].getSize() == 1
                        && !SYMMETRIC.contains(owner + "::" + name)) {
                    MutationIdentifier id = context.registerMutation(
                            SwappedArguments.this, "swapped the last two arguments of " + owner + "::" + name);
                    if (context.shouldMutate(id)) {
                        super.visitInsn(Opcodes.SWAP);
                    }
                }
                super.visitMethodInsn(opcode, owner, name, descriptor, isInterface);
            }
        };
    }

    @Override
    public String getGloballyUniqueId() {
        return getClass().getName();
    }

    @Override
    public String getName() {
        return "SWAPPED_ARGUMENTS";
    }
}
