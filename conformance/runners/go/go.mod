module kspec-runner

go 1.21
