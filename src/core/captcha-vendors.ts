/** The differences between captcha vendors. A vendor's widget in a page takes a person's answer; its server tells whether it is valid. */
export interface CaptchaVendor {
  /** The script of the widget, and the class of the element for it. */
  readonly script: string
  readonly widget: string
  /** The form field in which the widget leaves the answer. */
  readonly answer: string
  readonly verifyUrl: string
  /** The sources of the widget, for a Content-Security-Policy. */
  readonly origins: readonly string[]
}

export type CaptchaVendorName = 'recaptcha' | 'hcaptcha' | 'turnstile'

export const CAPTCHA_VENDORS: Readonly<Record<CaptchaVendorName, CaptchaVendor>> = {
  recaptcha: {
    script: 'https://www.google.com/recaptcha/api.js',
    widget: 'g-recaptcha',
    answer: 'g-recaptcha-response',
    verifyUrl: 'https://www.google.com/recaptcha/api/siteverify',
    origins: ['https://www.google.com/recaptcha/', 'https://www.gstatic.com/recaptcha/'],
  },
  hcaptcha: {
    script: 'https://js.hcaptcha.com/1/api.js',
    widget: 'h-captcha',
    answer: 'h-captcha-response',
    verifyUrl: 'https://api.hcaptcha.com/siteverify',
    origins: ['https://hcaptcha.com', 'https://*.hcaptcha.com'],
  },
  turnstile: {
    script: 'https://challenges.cloudflare.com/turnstile/v0/api.js',
    widget: 'cf-turnstile',
    answer: 'cf-turnstile-response',
    verifyUrl: 'https://challenges.cloudflare.com/turnstile/v0/siteverify',
    origins: ['https://challenges.cloudflare.com'],
  },
}
