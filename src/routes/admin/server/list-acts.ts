import { Type } from '../../../core/shapes.ts'
import { checkText } from '../../../domain/text.ts'
import { endpoint } from '../../../http/endpoint.ts'

const Query = Type.Object({
  before: Type.Optional(Type.Integer()),
  limit: Type.Optional(Type.Integer({ minimum: 1 })),
  actor: Type.Optional(Type.String()),
  target: Type.Optional(Type.String()),
})

export const listActs = endpoint(
  'GET /_hearth/admin/v1/acts',
  { auth: 'admin', query: Query },
  async ({ query }, { admin }) => {
    const { before, limit, actor, target } = query
    for (const [name, text] of Object.entries({ actor, target })) checkText(name, text ?? '', 512)
    const acts = await admin.audit.list({ before, limit, actor, target })
    return { acts, ...(acts.length > 0 ? { next_before: acts.at(-1)!.act_nid } : {}) }
  },
)
