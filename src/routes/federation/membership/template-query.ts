import { Type } from '../../../core/shapes.ts'

/** The room versions that a server supports; version 1 if it names none. */
export const TemplateQuery = Type.Object({ ver: Type.Optional(Type.Array(Type.String(), { maxItems: 1_000 })) })

export const OLDEST_VERSION: readonly string[] = ['1']
