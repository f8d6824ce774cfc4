import type { PushAction } from '../../../core/push/default-rules.ts'
import { Type } from '../../../core/shapes.ts'

/** The actions of a push rule: texts, and objects that set a tweak. */
export const PushActions = Type.Array(
  Type.Unsafe<PushAction>({
    anyOf: [
      { type: 'string' },
      { type: 'object', properties: { set_tweak: { type: 'string' } }, required: ['set_tweak'] },
    ],
  }),
)
