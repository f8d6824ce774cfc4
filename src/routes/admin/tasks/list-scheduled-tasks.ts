import { Type } from '../../../core/shapes.ts'
import { checkText } from '../../../domain/text.ts'
import { endpoint } from '../../../http/endpoint.ts'

const Query = Type.Object({
  action_name: Type.Optional(Type.String()),
  resource_id: Type.Optional(Type.String()),
  job_status: Type.Optional(Type.String()),
  max_timestamp: Type.Optional(Type.Integer({ minimum: 0 })),
})

const MAX_TEXT_CHARS = 512

export const listScheduledTasks = endpoint(
  'GET /_synapse/admin/v1/scheduled_tasks',
  { auth: 'admin', query: Query },
  async ({ query }, { admin }) => {
    const { action_name: action, resource_id: resourceId, job_status: status, max_timestamp: before } = query
    for (const [name, text] of Object.entries({ action_name: action, resource_id: resourceId, job_status: status })) {
      checkText(name, text ?? '', MAX_TEXT_CHARS)
    }
    return { scheduled_tasks: await admin.statistics.tasks({ action, resourceId, status, before }) }
  },
)
