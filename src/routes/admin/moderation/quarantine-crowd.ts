import { Type } from '../../../core/shapes.ts'
import { endpoint } from '../../../http/endpoint.ts'
import { CrowdShape, crowdOf } from './crowd-body.ts'

export const quarantineCrowd = endpoint(
  'POST /_hearth/admin/v1/crowds/quarantine',
  { auth: 'admin', grave: true, body: Type.Object({ crowd: CrowdShape }) },
  async ({ requester, body }, { admin, media }) => {
    let hidden = 0
    const users = await admin.crowds.find(crowdOf(body.crowd))
    for (const { user_id } of users) hidden += await media.desk.quarantineOf(user_id, requester.name)
    return { total: users.length, num_quarantined: hidden }
  },
)
