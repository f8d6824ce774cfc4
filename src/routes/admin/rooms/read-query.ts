import { Type } from '../../../core/shapes.ts'

/** The direction in which a time or a timeline is followed; forwards, where nothing is said. */
export const Direction = Type.Optional(Type.Unsafe<'f' | 'b'>({ type: 'string', enum: ['f', 'b'] }))
