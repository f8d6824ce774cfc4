import { type Shape, Type } from '../../core/shapes.ts'

/** A part of a body that may be absent; tools also write null for that. */
export const orNull = <S extends Shape>(shape: S) => Type.Optional(Type.Union([shape, Type.Null()]))
