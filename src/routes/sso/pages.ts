import { nameOfAddress } from '../../core/return-address.ts'
import type { Demand, NameChoice, SignedIn } from '../../domain/sso/single-sign-on.ts'
import { escapeHtml, type Page } from '../web/page.ts'

/** A way to sign in, as a page lists it. */
export interface Choice {
  readonly name: string
  readonly address: string
}

/** The list's badges are drawn from the names: no page of ours loads an image from elsewhere. */
function choiceList(choices: readonly Choice[], verb: string): string {
  const items = choices.map(({ name, address }) => {
    const initial = escapeHtml([...name.trim()][0]?.toUpperCase() ?? '?')
    const badge = `<span class="badge" aria-hidden="true">${initial}</span>`
    return `<li><a href="${escapeHtml(address)}">${badge}<span>${verb} ${escapeHtml(name)}</span></a></li>`
  })
  return `<ul class="choices">\n${items.join('\n')}\n</ul>`
}

/** Where a person chooses one of several services to sign in with. */
export function chooserPage(serverName: string, returnTo: string, choices: readonly Choice[]): Page {
  return {
    title: `Sign in · ${serverName}`,
    heading: 'Sign in',
    subheading: `to ${serverName}`,
    content: `<section>
<p>How would you like to sign in?</p>
${choiceList(choices, 'Continue with')}
</section>`,
    footer: `Afterwards you go back to ${nameOfAddress(returnTo)}.`,
  }
}

/** Asks a person, before the client gets what it needs to log in, whether it is the right one. */
export function confirmPage(serverName: string, { userId, returnTo, location }: SignedIn, isNew: boolean): Page {
  const client = escapeHtml(nameOfAddress(returnTo))
  return {
    title: `Continue to ${nameOfAddress(returnTo)} · ${serverName}`,
    heading: isNew ? 'Welcome' : 'Almost there',
    subheading: isNew ? `Your account on ${serverName} is ready.` : `You have signed in to ${serverName}.`,
    content: `<section>
<p>Do you want to continue to <strong>${client}</strong>? It will be able to read and send messages as <strong>${escapeHtml(userId)}</strong>.</p>
<p class="actions"><a class="button" href="${escapeHtml(location)}">Continue to ${client}</a></p>
</section>
<section>
<dl>
<dt>Your account</dt><dd>${escapeHtml(userId)}</dd>
<dt>The app’s address</dt><dd><code>${escapeHtml(withoutQuery(returnTo))}</code></dd>
</dl>
<p class="hint">If you did not begin to sign in there, close this page: then nothing happens.</p>
</section>`,
    footer: 'This page is good for a short time only.',
  }
}

/** What follows the path tells a person nothing. */
function withoutQuery(address: string): string {
  return address.replace(/[?#].*$/s, '')
}

/** Where a new person chooses a user name. */
export function namePage(
  serverName: string,
  flow: string,
  { providerName, suggestion, displayName }: NameChoice,
  attempt?: { readonly username: string; readonly problem: string },
): Page {
  const value = escapeHtml(attempt?.username ?? suggestion)
  const greeting = displayName === undefined ? 'Welcome!' : `Welcome, ${escapeHtml(displayName)}!`
  const problem = attempt && `<p class="problem" id="problem">${escapeHtml(attempt.problem)}</p>\n`
  const described = `hint${attempt === undefined ? '' : ' problem'}`
  return {
    status: attempt === undefined ? 200 : 400,
    title: `Choose a user name · ${serverName}`,
    heading: 'Choose a user name',
    subheading: `for your account on ${serverName}`,
    content: `<section>
<p>${greeting} You have signed in with ${escapeHtml(providerName)}, and are new here.</p>
${problem ?? ''}<form method="post" action="name">
<input type="hidden" name="flow" value="${escapeHtml(flow)}">
<label>User name
<input name="username" value="${value}" required maxlength="200" autocomplete="username" autocapitalize="none" autocorrect="off" spellcheck="false" autofocus aria-describedby="${described}">
</label>
<p class="hint" id="hint">Others find you as <strong>@your-name:${escapeHtml(serverName)}</strong>. Small letters, digits and <code>. _ = - / +</code> are possible. It cannot be changed later.</p>
<p class="actions"><button>Create account</button></p>
</form>
</section>`,
    hasForm: true,
  }
}

const DEEDS: readonly (readonly [pattern: RegExp, deed: string])[] = [
  [/ C\/(?:delete_)?devices/, 'remove devices from your account'],
  [/ C\/account\/password/, 'change the password of your account'],
  [/ C\/account\/deactivate/, 'deactivate your account for ever'],
  [/ C\/account\/3pid/, 'add an address to your account'],
  [/ C\/keys\/device_signing/, 'replace the keys that vouch for your devices'],
  [/ C1\/login\/get_token/, 'sign in on another device with your account'],
]

/** Tells a person what an app wants to do in their name, and where to prove that they want it. */
export function demandPage(serverName: string, { userId, operation }: Demand, choices: readonly Choice[]): Page {
  const deed = DEEDS.find(([pattern]) => pattern.test(operation))?.[1] ?? 'do something that needs your consent'
  return {
    title: `Is it you? · ${serverName}`,
    heading: 'Is it you?',
    subheading: userId,
    content: `<section>
<p>An app that is signed in to your account wants to <strong>${deed}</strong>. Sign in again to allow it.</p>
${choiceList(choices, 'Sign in with')}
<p class="hint">If you did not ask for this, close this page: then nothing happens. And look through the devices of your account.</p>
</section>`,
  }
}
