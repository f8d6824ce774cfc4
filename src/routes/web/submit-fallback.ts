import { ProtocolError } from '../../core/errors.ts'
import { Type } from '../../core/shapes.ts'
import { endpoint } from '../../http/endpoint.ts'
import { Opaque } from '../identity/validation/token-request.ts'
import { donePage, lostPage, stagePage } from './fallback-page.ts'
import { FALLBACK_STAGES } from './fallback-stages.ts'

/** The fields of all stages. */
export const StageForm = {
  session: Type.String(),
  password: Type.Optional(Type.String()),
  token: Type.Optional(Type.String()),
  email: Type.Optional(Type.String({ maxLength: 500 })),
  number: Type.Optional(Type.String({ maxLength: 64 })),
  sid: Type.Optional(Opaque),
  'g-recaptcha-response': Type.Optional(Type.String()),
  'h-captcha-response': Type.Optional(Type.String()),
  'cf-turnstile-response': Type.Optional(Type.String()),
}

const Body = Type.Object(StageForm)

/** Protected against forged forms by the session id in the form, which other sites do not know; cookies are not used here. */
export const submitFallback = endpoint(
  'POST C/auth/{stage}/fallback/web',
  { auth: 'none', limited: 'other', body: Body, forms: true },
  async (request, services) => {
    const { params, body, fetchSite } = request
    if (fetchSite === 'cross-site') throw new ProtocolError('M_FORBIDDEN', 'Another site may not send this form.')
    const { session } = body
    const stage = FALLBACK_STAGES.get(params.stage)
    const view = await services.interactiveAuth.look(session)
    if (stage === undefined || view === undefined) return lostPage(services, request)
    try {
      const isNow = view.next.includes(params.stage)
      const fields = isNow ? await stage.prepare?.(body, services, view, request) : undefined
      if (fields) return stagePage(stage, { session, view, problem: undefined, fields }, services, request)
      await services.interactiveAuth.submit(session, params.stage, stage.auth(body, services, view))
      return donePage(services, request)
    } catch (error) {
      if (!(error instanceof ProtocolError) || error.status >= 500) throw error
      if (error.errcode === 'M_NOT_FOUND' || error.errcode === 'M_BAD_STATE') return lostPage(services, request)
      return stagePage(stage, { session, view, problem: error, fields: body }, services, request)
    }
  },
)
