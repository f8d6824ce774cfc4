import { Type } from '../../../core/shapes.ts'
import type { ToDeviceMessages } from '../../../domain/e2e/to-device.ts'
import { MAX_TO_DEVICE_CALL_BYTES } from '../../../domain/limits.ts'
import { endpoint } from '../../../http/endpoint.ts'

const Body = Type.Object({
  messages: Type.Unsafe<ToDeviceMessages>({
    type: 'object',
    additionalProperties: { type: 'object', additionalProperties: { type: 'object' } },
  }),
})

export const sendToDevice = endpoint(
  'PUT C/sendToDevice/{eventType}/{txnId}',
  {
    auth: 'user',
    suspended: true,
    guests: true,
    limited: 'other',
    batched: true,
    also: ['CU/sendToDevice/{eventType}/{txnId}'],
    body: Body,
    maxBodyBytes: MAX_TO_DEVICE_CALL_BYTES,
  },
  async ({ requester, params, body, bodyOffence, path }, { toDevice }) => {
    await toDevice.send(requester, { type: params.eventType, messages: body.messages, offence: bodyOffence, path })
    return {}
  },
)
