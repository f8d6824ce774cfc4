import { Type } from '../../../core/shapes.ts'
import { checkText } from '../../../domain/text.ts'
import { endpoint } from '../../../http/endpoint.ts'

const STATES = ['scheduled', 'active', 'complete', 'cancelled', 'failed'] as const

const Status = Type.Unsafe<(typeof STATES)[number]>({ type: 'string', enum: STATES })

const Query = Type.Object({
  action_name: Type.Optional(Type.String()),
  resource_id: Type.Optional(Type.String()),
  status: Type.Optional(Status),
  // What it was called at first.
  job_status: Type.Optional(Status),
  max_timestamp: Type.Optional(Type.Integer({ minimum: 0 })),
})

const MAX_TEXT_CHARS = 512

export const listScheduledTasks = endpoint(
  'GET /_synapse/admin/v1/scheduled_tasks',
  { auth: 'admin', query: Query },
  async ({ query }, { admin }) => {
    const { action_name: action, resource_id: resourceId, max_timestamp: before } = query
    const status = query.status ?? query.job_status
    for (const [name, text] of Object.entries({ action_name: action, resource_id: resourceId })) {
      checkText(name, text ?? '', MAX_TEXT_CHARS)
    }
    return { scheduled_tasks: await admin.statistics.tasks({ action, resourceId, status, before }) }
  },
)
