"""The script that draws the charts of a page: ``python -m release.chart_library`` writes it.

vl-convert's package holds Vega, Vega-Lite and Vega-Embed, and bundles them into one script. That takes seconds, so it
is done once, and the script is part of this package. With the same release of vl-convert it comes out the same.
"""

from __future__ import annotations

from tests.corpora import REPOSITORY

LIBRARY = REPOSITORY / "kafkalog_cli" / "page" / "templates" / "vega.js"
#: Vega-Embed holds an interpreter of expressions: the policy of the page allows no function to be made of text.
_SNIPPET = "window.vegaEmbed = vegaEmbed;"
_NOTICE = """\
/*! {versions}, as bundled by vl-convert {bundler}.

Vega, Vega-Lite and Vega-Embed: Copyright (c) 2015-2023, University of Washington Interactive Data Lab.
All rights reserved.

Redistribution and use in source and binary forms, with or without modification, are permitted provided that the
following conditions are met:

1. Redistributions of source code must retain the above copyright notice, this list of conditions and the following
   disclaimer.
2. Redistributions in binary form must reproduce the above copyright notice, this list of conditions and the following
   disclaimer in the documentation and/or other materials provided with the distribution.
3. Neither the name of the copyright holder nor the names of its contributors may be used to endorse or promote products
   derived from this software without specific prior written permission.

THIS SOFTWARE IS PROVIDED BY THE COPYRIGHT HOLDERS AND CONTRIBUTORS "AS IS" AND ANY EXPRESS OR IMPLIED WARRANTIES,
INCLUDING, BUT NOT LIMITED TO, THE IMPLIED WARRANTIES OF MERCHANTABILITY AND FITNESS FOR A PARTICULAR PURPOSE ARE
DISCLAIMED. IN NO EVENT SHALL THE COPYRIGHT HOLDER OR CONTRIBUTORS BE LIABLE FOR ANY DIRECT, INDIRECT, INCIDENTAL,
SPECIAL, EXEMPLARY, OR CONSEQUENTIAL DAMAGES (INCLUDING, BUT NOT LIMITED TO, PROCUREMENT OF SUBSTITUTE GOODS OR
SERVICES; LOSS OF USE, DATA, OR PROFITS; OR BUSINESS INTERRUPTION) HOWEVER CAUSED AND ON ANY THEORY OF LIABILITY,
WHETHER IN CONTRACT, STRICT LIABILITY, OR TORT (INCLUDING NEGLIGENCE OR OTHERWISE) ARISING IN ANY WAY OUT OF THE USE OF
THIS SOFTWARE, EVEN IF ADVISED OF THE POSSIBILITY OF SUCH DAMAGE.

Parts of D3 in it: Copyright 2010-2023 Mike Bostock

Permission to use, copy, modify, and/or distribute this software for any purpose with or without fee is hereby granted,
provided that the above copyright notice and this permission notice appear in all copies.

THE SOFTWARE IS PROVIDED "AS IS" AND THE AUTHOR DISCLAIMS ALL WARRANTIES WITH REGARD TO THIS SOFTWARE INCLUDING ALL
IMPLIED WARRANTIES OF MERCHANTABILITY AND FITNESS. IN NO EVENT SHALL THE AUTHOR BE LIABLE FOR ANY SPECIAL, DIRECT,
INDIRECT, OR CONSEQUENTIAL DAMAGES OR ANY DAMAGES WHATSOEVER RESULTING FROM LOSS OF USE, DATA OR PROFITS, WHETHER IN AN
ACTION OF CONTRACT, NEGLIGENCE OR OTHER TORTIOUS ACTION, ARISING OUT OF OR IN CONNECTION WITH THE USE OR PERFORMANCE OF
THIS SOFTWARE.
*/
"""


def library() -> str:
    """The script. Raises ImportError where vl-convert is not installed."""
    import vl_convert

    versions = (
        f"vega {vl_convert.get_vega_version()}, vega-lite {vl_convert.get_vegalite_versions()[-1]}, "
        f"vega-embed {vl_convert.get_vega_embed_version()}"
    )
    script = vl_convert.javascript_bundle(_SNIPPET)
    if "</script" in script or "<!--" in script:
        raise ValueError("the script would end its element")
    return _NOTICE.format(versions=versions, bundler=vl_convert.__version__) + script.strip() + "\n"


if __name__ == "__main__":
    LIBRARY.write_text(library(), encoding="utf-8")
