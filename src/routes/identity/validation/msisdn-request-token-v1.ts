import { Type } from '../../../core/shapes.ts'
import { endpoint } from '../../../http/endpoint.ts'
import { IDENTITY_TOKEN_KEYS, LookQuery, tokenRequestOf } from './token-request.ts'

const Body = Type.Object({ ...IDENTITY_TOKEN_KEYS, country: Type.String(), phone_number: Type.String() })

export const msisdnRequestTokenV1 = endpoint(
  'POST P1/validate/msisdn/requestToken',
  { auth: 'none', query: LookQuery, body: Body, forms: true },
  async (request, { identity }) => {
    const { country, phone_number } = request.body
    const { sid, phone } = await identity.sessions.requestMsisdn(country, phone_number, tokenRequestOf(request))
    return { sid, success: true, msisdn: phone.msisdn, intl_fmt: phone.international }
  },
)
