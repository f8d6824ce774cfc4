import type { ProtocolError } from '../../core/errors.ts'
import type { UiaView } from '../../domain/accounts/interactive-auth.ts'
import type { Services } from '../../domain/services.ts'
import { type RawReply, rawReply } from '../../http/endpoint.ts'
import type { FallbackStage, Fields } from './fallback-stage.ts'
import { escapeHtml, type Page, pageReply } from './page.ts'

/** How a page tells the client that opened it (client-server API, "Fallback"). */
const TELL_CLIENT = `if (window.onAuthDone) window.onAuthDone()
else if (window.opener && window.opener.postMessage) window.opener.postMessage('authDone', '*')`

/** Its address holds the session, so that neither the page nor where it came from is kept. */
function unstored(page: Page): RawReply {
  const { status, headers, body } = pageReply(page)
  return rawReply({ status, headers: { ...headers, 'cache-control': 'no-store' }, body })
}

/** The form of a stage, with what was wrong with the last try. */
export function stagePage(
  stage: FallbackStage,
  shown: {
    readonly session: string
    readonly view: UiaView
    readonly error: ProtocolError | undefined
    readonly fields: Fields
  },
  services: Services,
): RawReply {
  const { session, view, error, fields } = shown
  const name = services.config.server_name
  const vendor = stage.vendor?.(services)
  return unstored({
    status: error?.status ?? 200,
    title: `${stage.heading} · ${name}`,
    heading: stage.heading,
    subheading: name,
    content: `<section>${error === undefined ? '' : `\n<p class="problem" role="alert">${escapeHtml(error.message)}</p>`}
<form method="post">
<input type="hidden" name="session" value="${escapeHtml(session)}">
${stage.content(services, view, fields)}
<button>${escapeHtml(stage.button(fields))}</button>
</form>
</section>`,
    hasForm: true,
    ...(vendor && { vendor }),
  })
}

/** What is left to say once a stage is completed. */
export function donePage(services: Services): RawReply {
  return unstored({
    title: `Thank you · ${services.config.server_name}`,
    heading: 'Thank you',
    subheading: services.config.server_name,
    content: '<section>\n<p>That worked. You can close this page and go on where you came from.</p>\n</section>',
    script: TELL_CLIENT,
  })
}

/** For a session or a stage that is not, or no longer, waited for. */
export function lostPage(services: Services): RawReply {
  return unstored({
    status: 404,
    title: `Nothing to do here · ${services.config.server_name}`,
    heading: 'Nothing to do here',
    subheading: services.config.server_name,
    content:
      '<section>\n<p>This page belongs to something that has ended, or that is not at this step. Go back to where you came from and begin again.</p>\n</section>',
  })
}
