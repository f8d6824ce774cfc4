import type { Errcode, ProtocolError } from '../../core/errors.ts'
import type { Medium } from '../../core/threepid.ts'
import { escapeHtml, type Page } from '../web/page.ts'

type Outcome = 'confirmed' | 'wrong' | 'unknown' | 'expired'

interface Texts {
  readonly headings: Readonly<Record<Outcome, string>>
  readonly subjects: Readonly<Record<Medium, string>>
  /** `{}` stands for the subject. */
  readonly messages: Readonly<Record<Outcome, readonly string[]>>
  readonly onwards: string
  readonly footer: string
}

const TEXTS: Readonly<Record<string, Texts>> = {
  en: {
    subjects: { email: 'email address', msisdn: 'phone number' },
    headings: {
      confirmed: 'Thank you, that worked',
      wrong: 'This link is not the right one',
      unknown: 'This link is not known here',
      expired: 'This link has expired',
    },
    messages: {
      confirmed: [
        'Your {} is confirmed.',
        'You can close this page and go on where you came from. Nothing has been published: whether others may find you by it is decided there.',
      ],
      wrong: ['If you asked for several messages, open the link of the newest.', 'Your {} has not been confirmed.'],
      unknown: [
        'It may be cut off, or too old. Copy the whole link from the message, or ask for a new one where you came from.',
        'Your {} has not been confirmed.',
      ],
      expired: ['Ask for a new message where you came from.', 'Your {} has not been confirmed by this link.'],
    },
    onwards: 'Go on',
    footer: 'No scripts, no cookies, nothing loaded from elsewhere.',
  },
  de: {
    subjects: { email: 'E-Mail-Adresse', msisdn: 'Telefonnummer' },
    headings: {
      confirmed: 'Danke, das hat geklappt',
      wrong: 'Das ist nicht der richtige Link',
      unknown: 'Dieser Link ist hier nicht bekannt',
      expired: 'Dieser Link ist abgelaufen',
    },
    messages: {
      confirmed: [
        'Ihre {} ist bestätigt.',
        'Sie können diese Seite schließen und dort weitermachen, wo Sie herkamen. Veröffentlicht wurde nichts: Ob andere Sie darüber finden, wird dort entschieden.',
      ],
      wrong: [
        'Wenn Sie mehrere Nachrichten angefordert haben, öffnen Sie den Link der neuesten.',
        'Ihre {} wurde nicht bestätigt.',
      ],
      unknown: [
        'Er ist vielleicht abgeschnitten oder zu alt. Kopieren Sie den ganzen Link aus der Nachricht, oder fordern Sie dort, wo Sie herkamen, einen neuen an.',
        'Ihre {} wurde nicht bestätigt.',
      ],
      expired: [
        'Fordern Sie dort, wo Sie herkamen, eine neue Nachricht an.',
        'Ihre {} wurde durch diesen Link nicht bestätigt.',
      ],
    },
    onwards: 'Weiter',
    footer: 'Keine Skripte, keine Cookies, nichts von anderswo.',
  },
}

const OUTCOMES: Partial<Record<Errcode, Outcome>> = { M_TOKEN_INCORRECT: 'wrong', M_SESSION_EXPIRED: 'expired' }

/** What a person sees after opening the link of a message; `error` is why it did not work, `nextLink` where they want to go next. */
export function submissionPage(
  medium: Medium,
  brand: string,
  languages: readonly string[],
  { error, nextLink }: { readonly error: ProtocolError | undefined; readonly nextLink: string | undefined },
): Page {
  const language = languages.find((each) => Object.hasOwn(TEXTS, each)) ?? 'en'
  const texts = TEXTS[language] as Texts
  const outcome = error === undefined ? 'confirmed' : (OUTCOMES[error.errcode] ?? 'unknown')
  const heading = texts.headings[outcome]
  const paragraphs = texts.messages[outcome].map((text) => text.replace('{}', texts.subjects[medium]))
  const onwards =
    nextLink === undefined
      ? []
      : [`<p class="actions"><a class="button" href="${escapeHtml(nextLink)}">${texts.onwards}</a></p>`]
  return {
    status: error?.status ?? 200,
    language,
    title: `${heading} · ${brand}`,
    heading,
    subheading: brand,
    content: `<section>\n${[...paragraphs.map((text) => `<p>${escapeHtml(text)}</p>`), ...onwards].join('\n')}\n</section>`,
    footer: error === undefined ? texts.footer : `${error.errcode} · ${texts.footer}`,
  }
}
