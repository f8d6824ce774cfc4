import { Type } from '../../../core/shapes.ts'
import { endpoint } from '../../../http/endpoint.ts'
import { CrowdShape, crowdOf } from './crowd-body.ts'

const Body = Type.Object({
  crowd: CrowdShape,
  lock: Type.Optional(Type.Boolean()),
  suspend: Type.Optional(Type.Boolean()),
  shadow_ban: Type.Optional(Type.Boolean()),
})

export const restrainCrowd = endpoint(
  'POST /_hearth/admin/v1/crowds/restrain',
  { auth: 'admin', grave: true, body: Body },
  async ({ body: { crowd, lock, suspend, shadow_ban } }, { admin }) => ({
    total: await admin.crowds.restrain(crowdOf(crowd), {
      ...(lock !== undefined && { isLocked: lock }),
      ...(suspend !== undefined && { isSuspended: suspend }),
      ...(shadow_ban !== undefined && { isShadowBanned: shadow_ban }),
    }),
  }),
)
