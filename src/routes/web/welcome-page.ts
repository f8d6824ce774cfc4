import { escapeHtml, type Page } from './page.ts'

export interface WelcomeFacts {
  readonly serverName: string
  readonly baseUrl: string
  readonly version: string
  readonly isRegistrationOpen: boolean
}

function account(isRegistrationOpen: boolean): string {
  return isRegistrationOpen
    ? 'Choose “create account” in the client, or sign in if you have one.'
    : 'Sign in with your account. New ones are made by the people who run this server.'
}

/** What a person sees who opens the server's address in a browser. */
export function welcomePage({ serverName, baseUrl, version, isRegistrationOpen }: WelcomeFacts): Page {
  const name = escapeHtml(serverName)
  const address = escapeHtml(baseUrl)
  return {
    title: `${serverName} · Hearth`,
    heading: serverName,
    subheading: 'A Hearth homeserver is burning here.',
    content: `<section>
<h2>What this is</h2>
<p>This is a server for the Matrix protocol: it keeps the accounts, rooms and messages of the people on <strong>${name}</strong>.
There is nothing to read here in a browser; you talk through it with a client.</p>
</section>
<section>
<h2>Connect a client</h2>
<ol>
<li>Open any Matrix client, on a phone or a computer.</li>
<li>Where it asks for a homeserver, enter <code>${address}</code></li>
<li>${account(isRegistrationOpen)}</li>
<li>Others find you as <code>@your-name:${name}</code></li>
</ol>
</section>
<section>
<h2>Details</h2>
<dl>
<dt>Server name</dt><dd>${name}</dd>
<dt>Address</dt><dd>${address}</dd>
<dt>Software</dt><dd>Hearth ${escapeHtml(version)}</dd>
<dt>Interfaces</dt><dd>client r0 and v3, <a href="/_matrix/client/versions">releases served</a></dd>
<dt>Discovery</dt><dd><a href="/.well-known/matrix/client">/.well-known/matrix/client</a></dd>
</dl>
</section>`,
    footer: 'No scripts, no cookies, nothing loaded from elsewhere.',
  }
}
