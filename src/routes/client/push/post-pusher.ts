import { Type } from '../../../core/shapes.ts'
import { AnyObject, endpoint } from '../../../http/endpoint.ts'

const Body = Type.Object({
  // Null deletes the pusher.
  kind: Type.Union([Type.String(), Type.Null()]),
  app_id: Type.String(),
  pushkey: Type.String(),
  app_display_name: Type.Optional(Type.String()),
  device_display_name: Type.Optional(Type.String()),
  profile_tag: Type.Optional(Type.String()),
  lang: Type.Optional(Type.String()),
  data: Type.Optional(AnyObject),
  append: Type.Optional(Type.Boolean()),
  enabled: Type.Optional(Type.Boolean()),
  'org.matrix.msc3881.enabled': Type.Optional(Type.Boolean()),
})

export const postPusher = endpoint(
  'POST C/pushers/set',
  { auth: 'user', suspended: true, limited: 'other', body: Body },
  async ({ requester, body }, { pushers }) => {
    await pushers.set(requester, body)
    return {}
  },
)
