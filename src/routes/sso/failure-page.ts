import type { Config } from '../../config/schema.ts'
import { nameOfAddress } from '../../core/return-address.ts'
import type { FailureReason, SignInFailure } from '../../domain/sso/failure.ts'
import { escapeHtml, type Page } from '../web/page.ts'
import { againAddress } from './addresses.ts'

interface Text {
  readonly heading: string
  readonly paragraphs: readonly string[]
}

/** `{provider}` stands for the other service's name. */
const TEXTS: Readonly<Record<FailureReason, Text>> = {
  'unknown-provider': {
    heading: 'There is no such way to sign in here',
    paragraphs: [
      'Go back to your app and choose another one. If it offered you this one, tell the people who run this server.',
    ],
  },
  'bad-address': {
    heading: 'We can’t send you back to your app',
    paragraphs: [
      'The app did not say where you should go after signing in, or named a place that browsers must not be sent to.',
      'Nothing has happened. If a link brought you here, don’t use it again.',
    ],
  },
  ended: {
    heading: 'This page has expired',
    paragraphs: [
      'It took too long, was finished already, or was begun in another browser.',
      'Go back to your app and start again. If you did not begin to sign in, just close this page: nothing has happened.',
    ],
  },
  cancelled: {
    heading: 'You have not been signed in',
    paragraphs: ['The sign-in at {provider} was cancelled. Nothing has changed.'],
  },
  unreachable: {
    heading: '{provider} does not answer',
    paragraphs: ['We could not reach it just now, or it is not well. Try again in a few minutes.'],
  },
  refused: {
    heading: 'We could not verify who you are',
    paragraphs: [
      'What {provider} answered does not hold, so you have not been signed in.',
      'Try again. If it happens again, tell the people who run this server: its log says more.',
    ],
  },
  deactivated: {
    heading: 'This account has been deactivated',
    paragraphs: ['It cannot be used any more, and its name is not given to anybody else.'],
  },
  'no-account': {
    heading: 'You have no account here yet',
    paragraphs: [
      '{provider} knows you, but this server makes no new accounts for its people.',
      'Ask the people who run this server for one.',
    ],
  },
  full: {
    heading: 'There is no room for another account',
    paragraphs: ['This server has as many accounts as it may have. Please write to the people who run it.'],
  },
  'other-person': {
    heading: 'That was somebody else',
    paragraphs: [
      'You signed in at {provider} as another person than the one whose account this is. Nothing has changed.',
    ],
  },
  'not-again': {
    heading: 'You were not asked to sign in again',
    paragraphs: [
      '{provider} still knew you and let you through. To be sure that it is you, you have to sign in anew.',
      'Sign out at {provider} first, then try again.',
    ],
  },
}

/** What a person sees when a sign-in came to nothing. */
export function failurePage(failure: SignInFailure, config: Config): Page {
  const { reason, retry, errcode, status } = failure
  const name = config.sso.providers.find(({ id }) => id === retry?.providerId)?.name ?? 'the other service'
  const fill = (text: string): string => text.replaceAll('{provider}', name)
  const { heading, paragraphs } = TEXTS[reason]
  const texts = paragraphs.map((text) => `<p>${escapeHtml(fill(text))}</p>`)
  return {
    status,
    title: `${fill(heading)} · ${config.server_name}`,
    heading: capitalised(fill(heading)),
    subheading: `Sign-in to ${config.server_name}`,
    content: `<section>\n${texts.join('\n')}${retry === undefined ? '' : actions(failure, config)}\n</section>`,
    footer: `Error code: ${errcode}`,
  }
}

function actions({ retry }: SignInFailure, config: Config): string {
  if (retry === undefined) return ''
  const again = `<a class="button" href="${escapeHtml(againAddress(config, retry))}">Try again</a>`
  const from =
    retry.purpose.kind === 'login'
      ? ` <p class="hint">Or go back to ${escapeHtml(nameOfAddress(retry.purpose.returnTo))} and sign in another way.</p>`
      : ''
  return `\n<p class="actions">${again}</p>${from}`
}

function capitalised(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1)
}
