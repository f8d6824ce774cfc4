import { Type } from '../../core/shapes.ts'
import { SSO_STAGE } from '../../domain/sso/single-sign-on.ts'
import { endpoint } from '../../http/endpoint.ts'
import { ssoFallback } from '../sso/fallback.ts'
import { donePage, lostPage, stagePage } from './fallback-page.ts'
import { FALLBACK_STAGES } from './fallback-stages.ts'

export const showFallback = endpoint(
  'GET C/auth/{stage}/fallback/web',
  { auth: 'none', limited: 'other', query: Type.Object({ session: Type.String() }) },
  async (request, services) => {
    const {
      params,
      query: { session },
    } = request
    const stage = FALLBACK_STAGES.get(params.stage)
    const view = await services.interactiveAuth.look(session)
    if (view?.completed.includes(params.stage)) return donePage(services, request)
    if (params.stage === SSO_STAGE) return ssoFallback(session, services, request)
    if (stage === undefined || !view?.next.includes(params.stage)) return lostPage(services, request)
    return stagePage(stage, { session, view, problem: undefined, fields: {} }, services, request)
  },
)
