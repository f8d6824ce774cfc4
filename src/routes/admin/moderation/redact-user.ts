import { endpoint } from '../../../http/endpoint.ts'
import { RedactionBody, redactionOf } from './redaction-body.ts'

export const redactUser = endpoint(
  'POST /_synapse/admin/v1/user/{userId}/redact',
  { auth: 'admin', grave: true, body: RedactionBody, bodyOptional: true },
  async ({ requester, params, body }, { admin }) => {
    const [id] = await admin.redactions.begin([params.userId], redactionOf(requester, body))
    return { redact_id: id }
  },
)
