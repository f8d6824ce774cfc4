import { escapeHtml, type Page } from './page.ts'

const TEXTS = {
  en: {
    heading: 'Set a new password?',
    paragraphs: [
      'Somebody asked for a new password for the account with this email address. If it was you, confirm it here and go on where you came from.',
      'If it was not you, close this page: your password stays as it is.',
    ],
    button: 'Yes, it was me',
  },
  de: {
    heading: 'Neues Passwort setzen?',
    paragraphs: [
      'Jemand möchte für das Konto mit dieser E-Mail-Adresse ein neues Passwort setzen. Wenn Sie das waren, bestätigen Sie es hier und machen Sie dort weiter, wo Sie herkamen.',
      'Wenn Sie es nicht waren, schließen Sie diese Seite: Ihr Passwort bleibt, wie es ist.',
    ],
    button: 'Ja, das war ich',
  },
} as const

/** What a person sees who opens the link of a mail about a new password. */
export function confirmationPage(
  submission: { readonly sid: string; readonly client_secret: string; readonly token: string },
  brand: string,
  languages: readonly string[],
): Page {
  const language = languages.find((each) => each === 'en' || each === 'de') ?? 'en'
  const { heading, paragraphs, button } = TEXTS[language]
  const hidden = Object.entries(submission)
    .filter(([name]) => ['sid', 'client_secret', 'token'].includes(name))
    .map(([name, value]) => `<input type="hidden" name="${name}" value="${escapeHtml(value)}">`)
  return {
    language,
    title: `${heading} · ${brand}`,
    heading,
    subheading: brand,
    hasForm: true,
    content: `<section>\n${paragraphs.map((text) => `<p>${escapeHtml(text)}</p>`).join('\n')}
<form method="post" action="confirm">
${hidden.join('\n')}
<div class="actions"><button type="submit">${escapeHtml(button)}</button></div>
</form>
</section>`,
  }
}
