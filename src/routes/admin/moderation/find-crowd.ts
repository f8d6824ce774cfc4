import { Type } from '../../../core/shapes.ts'
import { MAX_CROWD_SHOWN } from '../../../domain/limits/moderation.ts'
import { endpoint } from '../../../http/endpoint.ts'
import { CrowdShape, crowdOf } from './crowd-body.ts'

/** Whom an act would concern. */
export const findCrowd = endpoint(
  'POST /_hearth/admin/v1/crowds/find',
  { auth: 'admin', body: Type.Object({ crowd: CrowdShape }) },
  async ({ body }, { admin }) => {
    const found = await admin.crowds.find(crowdOf(body.crowd))
    return { total: found.length, user_ids: found.slice(0, MAX_CROWD_SHOWN).map(({ user_id }) => user_id) }
  },
)
