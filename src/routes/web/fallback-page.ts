import type { ProtocolError } from '../../core/errors.ts'
import type { UiaView } from '../../domain/accounts/interactive-auth.ts'
import type { Services } from '../../domain/services.ts'
import type { RawReply } from '../../http/endpoint.ts'
import type { FallbackStage, Fields } from './fallback-stage.ts'
import { openForm } from './form.ts'
import { pageReply } from './page.ts'

/** The script with which a page notifies the client that opened it (client-server API, "Fallback"). */
const TELL_CLIENT = `if (window.onAuthDone) window.onAuthDone()
else if (window.opener && window.opener.postMessage) window.opener.postMessage('authDone', '*')`

interface Reader {
  readonly acceptLanguage: string | undefined
}

/** The form of a stage, with the error of the last try. */
export function stagePage(
  stage: FallbackStage,
  shown: {
    readonly session: string
    readonly view: UiaView
    readonly problem: ProtocolError | undefined
    readonly fields: Fields
  },
  services: Services,
  { acceptLanguage }: Reader,
): RawReply {
  const { session, view, problem, fields } = shown
  const { name, hidden = {}, values = {} } = stage.page(services, view, { ...fields, session })
  return pageReply(
    services,
    name,
    { ...values, form: openForm({ session, ...hidden }) },
    { status: problem?.status, problem, acceptLanguage, isSecret: true, vendor: stage.vendor?.(services) },
  )
}

/** The page after a completed stage. */
export function donePage(services: Services, { acceptLanguage }: Reader): RawReply {
  return pageReply(services, 'fallback-done.page', {}, { acceptLanguage, isSecret: true, script: TELL_CLIENT })
}

/** The page for an unknown or expired session, or a stage that is not needed. */
export function lostPage(services: Services, { acceptLanguage }: Reader): RawReply {
  return pageReply(services, 'fallback-lost.page', {}, { status: 404, acceptLanguage, isSecret: true })
}
