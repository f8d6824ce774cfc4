import { Type } from '../../../core/shapes.ts'
import { endpoint } from '../../../http/endpoint.ts'
import { CrowdShape, crowdOf } from './crowd-body.ts'
import { RedactionBody, redactionOf } from './redaction-body.ts'

export const redactCrowd = endpoint(
  'POST /_hearth/admin/v1/crowds/redact',
  { auth: 'admin', grave: true, body: Type.Object({ crowd: CrowdShape, redaction: Type.Optional(RedactionBody) }) },
  async ({ requester, body }, { admin }) => {
    const users = (await admin.crowds.find(crowdOf(body.crowd))).map(({ user_id }) => user_id)
    const ids = await admin.redactions.begin(users, redactionOf(requester, body.redaction ?? {}))
    return { total: ids.length, redact_ids: ids }
  },
)
