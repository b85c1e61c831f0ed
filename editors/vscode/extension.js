// Starts `rollup lsp` and connects the editor with it.
const { workspace } = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

let client;

exports.activate = () => {
  const command = workspace.getConfiguration("rollup").get("command");
  client = new LanguageClient(
    "rollup",
    { command, args: ["lsp"] },
    { documentSelector: [{ language: "siddhiql" }, { language: "epl" }, { language: "toml" }] },
  );
  return client.start();
};

exports.deactivate = () => client?.stop();
